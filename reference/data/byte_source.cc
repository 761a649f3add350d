#include "reference/data/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)), size_(file_->size()) {}

  const std::string& path() const override { return path_; }
  std::uint64_t size_limit() const override { return size_; }
  std::size_t read(std::span<std::uint8_t> out) override {
    const std::size_t count = file_->read_at(offset_, std::as_writable_bytes(out));
    offset_ += count;
    return count;
  }

 private:
  std::unique_ptr<File> file_;
  std::string path_;
  std::uint64_t size_;
  std::uint64_t offset_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)), size_(file_->size()) {
    DDPROOF_CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  const std::string& path() const override { return path_; }

  // Deflate expands at most 1032 times (zlib's technical details).
  std::uint64_t size_limit() const override {
    constexpr std::uint64_t kExpansion = 1032;
    return size_ > std::numeric_limits<std::uint64_t>::max() / kExpansion
               ? std::numeric_limits<std::uint64_t>::max()
               : size_ * kExpansion;
  }

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      if (stream_.avail_in == 0) refill();
      if (stream_.avail_in == 0) {
        if (!between_members_) fail("the gzip data ends in the middle");
        return filled;
      }
      filled += inflate_into(out.subspan(filled));
    }
    return filled;
  }

 private:
  static constexpr int kGzipOnly = 16 + MAX_WBITS;

  void refill() {
    const std::size_t count = file_->read_at(read_, std::as_writable_bytes(std::span(input_)));
    read_ += count;
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(count);
  }

  std::size_t inflate_into(std::span<std::uint8_t> out) {
    const std::size_t room = std::min<std::size_t>(out.size(), std::numeric_limits<uInt>::max());
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(room);
    between_members_ = false;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      between_members_ = true;
      inflateReset(&stream_);
    } else if (status != Z_OK) {
      fail(stream_.msg != nullptr ? stream_.msg : "the gzip data is corrupt");
    }
    return room - stream_.avail_out;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        fmt::format("{}: byte {}: {}, expected gzip data", path_, read_ - stream_.avail_in, what));
  }

  std::unique_ptr<File> file_;
  std::string path_;
  std::uint64_t size_;
  std::uint64_t read_ = 0;  // from the file, into input_
  std::array<std::uint8_t, 1 << 16> input_{};
  z_stream stream_{};
  bool between_members_ = false;  // a file without any member is cut, not empty
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(FileSystem& files, const std::string& path) {
  std::unique_ptr<File> file = files.open(path);
  if (path.ends_with(".gz")) return std::make_unique<GzipSource>(std::move(file), path);
  return std::make_unique<PlainSource>(std::move(file), path);
}

void read_exactly(ByteSource& source, std::span<std::uint8_t> out, std::uint64_t offset,
                  const std::string& what) {
  const std::size_t count = source.read(out);
  if (count == out.size()) return;
  throw DataError(fmt::format("{}: byte {}: the data ends, expected {} bytes of {} from byte {}",
                              source.path(), offset + count, out.size(), what, offset));
}

void expect_end(ByteSource& source, std::uint64_t offset) {
  std::array<std::uint8_t, 1> extra{};
  if (source.read(extra) == 0) return;
  throw DataError(
      fmt::format("{}: byte {}: the data goes on, expected its end", source.path(), offset));
}

}  // namespace ddproof
