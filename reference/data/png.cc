#include "reference/data/png.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <span>

#include "backends/api/error.h"

namespace ddproof {
namespace {

// PNG specification (ISO/IEC 15948), section 11.2.2: the signature, then IHDR.
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 13;
constexpr std::size_t kTypeAt = 12;
constexpr std::size_t kWidthAt = 16;
constexpr std::size_t kHeightAt = 20;
constexpr std::size_t kDepthAt = 24;
constexpr std::size_t kColorAt = 25;
// Deflate makes of one byte at most this many.
constexpr std::uint64_t kDeflateLimit = 1032;

using Bytes = std::span<const std::byte>;

std::string name_of_pixels(int depth, int color) {
  constexpr std::array<const char*, 7> kNames{
      "grey", "unknown", "RGB", "palette", "grey with alpha", "unknown", "RGB with alpha"};
  const char* name = color >= 0 && color < 7 ? kNames[static_cast<std::size_t>(color)] : "unknown";
  return fmt::format("{} of {} bits", name, depth);
}

std::int64_t word_at(Bytes bytes, std::size_t at) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<int>(bytes[at + i]);
  return value;
}

PngSize parse_header(Bytes bytes, const std::string& path, PngColor color) {
  if (bytes.size() < kHeaderBytes) {
    throw DataError(fmt::format("{}: byte {}: the file ends, expected the {} bytes of a PNG header",
                                path, bytes.size(), kHeaderBytes));
  }
  constexpr std::array<unsigned char, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) != 0 ||
      std::memcmp(bytes.data() + kTypeAt, "IHDR", 4) != 0) {
    throw DataError(
        fmt::format("{}: byte 0: found no PNG signature and header, expected them", path));
  }
  const int depth = std::to_integer<int>(bytes[kDepthAt]);
  const int found = std::to_integer<int>(bytes[kColorAt]);
  const int expected = color == PngColor::kGrey ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
  if (depth != 8 || found != expected) {
    throw DataError(fmt::format("{}: byte {}: found pixels of {}, expected {}", path, kDepthAt,
                                name_of_pixels(depth, found), name_of_pixels(8, expected)));
  }
  const PngSize size{word_at(bytes, kWidthAt), word_at(bytes, kHeightAt)};
  if (size.width < 1 || size.height < 1) {
    throw DataError(fmt::format("{}: byte {}: found {} x {} pixels, expected at least one", path,
                                kWidthAt, size.width, size.height));
  }
  return size;
}

// libpng reports by longjmp, so what runs under run() may hold nothing that has a destructor.
class PngReader {
 public:
  explicit PngReader(Bytes bytes)
      : bytes_(bytes),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore)),
        info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
    if (png_ == nullptr || info_ == nullptr) throw ResourceError("PNG: not enough memory");
    png_set_read_fn(png_, this, read);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // False when libpng gave up: message() says why, position() where.
  bool decode(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  const std::string& message() const { return message_; }
  std::size_t position() const { return position_; }

 private:
  static void read(png_structp png, png_bytep out, std::size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->bytes_.size() - self->position_) {
      self->position_ = self->bytes_.size();
      png_error(png, "the file ends");
    }
    std::memcpy(out, self->bytes_.data() + self->position_, count);
    self->position_ += count;
  }
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    static_cast<PngReader*>(png_get_error_ptr(png))->message_ = message;
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}

  Bytes bytes_;
  std::size_t position_ = 0;
  std::string message_;
  png_structp png_;
  png_infop info_;
};

}  // namespace

PngSize read_png_size(FileSystem& files, const std::string& path, PngColor color) {
  std::array<std::byte, kHeaderBytes> header{};
  const std::size_t count = files.open(path)->read_at(0, header);
  return parse_header(Bytes(header).first(count), path, color);
}

PngImage read_png(FileSystem& files, const std::string& path, PngColor color) {
  const std::vector<std::byte> bytes = read_file(files, path);
  PngImage image{.size = parse_header(bytes, path, color)};
  const auto [width, height] = image.size;
  const auto row = static_cast<std::size_t>(width) * (color == PngColor::kGrey ? 1 : 3);
  // Before memory is taken. A row is below 2^34 bytes, so nothing overflows.
  if (row > kDeflateLimit * bytes.size() / static_cast<std::uint64_t>(height)) {
    throw DataError(fmt::format("{}: byte {}: found {} x {} pixels, which {} bytes cannot hold",
                                path, kWidthAt, width, height, bytes.size()));
  }
  image.pixels.resize(row * static_cast<std::size_t>(height));
  std::vector<png_bytep> rows(static_cast<std::size_t>(height));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = image.pixels.data() + i * row;
  PngReader reader(bytes);
  if (!reader.decode(rows.data())) {
    throw DataError(fmt::format("{}: byte {}: {}, expected a whole PNG image", path,
                                reader.position(), reader.message()));
  }
  return image;
}

}  // namespace ddproof
