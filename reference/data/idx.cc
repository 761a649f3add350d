#include "reference/data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "backends/api/error.h"
#include "reference/data/byte_source.h"

namespace ddproof {
namespace {

constexpr std::uint8_t kUnsignedByte = 8;
constexpr std::uint64_t kMagicSize = 4;
constexpr int kIdxClassCount = 10;

[[noreturn]] void fail(const std::string& path, std::uint64_t offset, const std::string& what) {
  throw DataError(fmt::format("{}: byte {}: {}", path, offset, what));
}

void check_magic(const std::string& path, const std::array<std::uint8_t, 4>& magic,
                 int dimensions) {
  const std::array<std::uint8_t, 4> expected{0, 0, kUnsignedByte,
                                             static_cast<std::uint8_t>(dimensions)};
  const std::array<const char*, 4> meaning{"IDX begins with zero", "IDX begins with zero",
                                           "unsigned bytes", "dimensions"};
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (magic[i] == expected[i]) continue;
    fail(path, i, fmt::format("found {}, expected {} ({})", magic[i], expected[i], meaning[i]));
  }
}

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

// The product of the sizes, if the file can hold that many elements.
std::uint64_t checked_count(const std::string& path, const std::vector<std::int64_t>& sizes,
                            std::uint64_t limit) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i]);
    if (count > limit / size) {
      fail(path, kMagicSize,
           fmt::format("the header announces {} bytes of elements, the file can hold at most {}",
                       fmt::join(sizes, " x "), limit));
    }
    count *= size;
  }
  return count;
}

// The plain file if it is there, else the packed one.
std::string path_of(FileSystem& files, const std::string& directory, const std::string& name) {
  const std::string plain = directory + "/" + name;
  if (files.exists(plain)) return plain;
  const std::string packed = plain + ".gz";
  if (files.exists(packed)) return packed;
  throw DataError(fmt::format("{}: no such file, and no {}.gz", plain, name));
}

}  // namespace

IdxArray read_idx(FileSystem& files, const std::string& path, int dimensions) {
  const std::unique_ptr<ByteSource> source = open_bytes(files, path);
  std::array<std::uint8_t, kMagicSize> magic{};
  read_exactly(*source, magic, 0, "IDX header");
  check_magic(path, magic, dimensions);

  std::vector<std::uint8_t> header(4 * static_cast<std::size_t>(dimensions));
  read_exactly(*source, header, kMagicSize, "IDX header");
  const std::uint64_t begin = kMagicSize + header.size();

  IdxArray array;
  for (std::size_t i = 0; i < header.size(); i += 4) array.sizes.push_back(big_endian(&header[i]));
  const std::uint64_t count = checked_count(path, array.sizes, source->size_limit());
  // In parts, because a small gzip file may claim gigabytes.
  constexpr std::uint64_t kPart = std::uint64_t{1} << 24;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t part = std::min(kPart, count - done);
    array.elements.resize(done + part);
    read_exactly(*source, std::span(array.elements).subspan(done), begin + done, "elements");
    done += part;
  }
  expect_end(*source, begin + count);
  return array;
}

std::unique_ptr<ImageDataset> read_idx_dataset(FileSystem& files, const std::string& directory,
                                               Split split) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string image_path = path_of(files, directory, prefix + "-images-idx3-ubyte");
  const std::string label_path = path_of(files, directory, prefix + "-labels-idx1-ubyte");
  IdxArray images = read_idx(files, image_path, 3);
  IdxArray labels = read_idx(files, label_path, 1);
  if (images.sizes[0] == 0) {
    fail(image_path, kMagicSize, "found 0 images, expected at least 1");
  }
  for (const std::size_t i : {1u, 2u}) {
    if (images.sizes[i] != 0) continue;
    fail(image_path, kMagicSize + 4 * i, "found an image size of 0, expected at least 1");
  }
  if (images.sizes[0] != labels.sizes[0]) {
    fail(label_path, kMagicSize,
         fmt::format("found {} labels, expected {}, the number of images "
                     "in {}",
                     labels.sizes[0], images.sizes[0], image_path));
  }
  for (std::size_t i = 0; i < labels.elements.size(); ++i) {
    if (labels.elements[i] < kIdxClassCount) continue;
    fail(label_path, kMagicSize + 4 + i,
         fmt::format("found label {}, expected 0 to {}", labels.elements[i], kIdxClassCount - 1));
  }
  return std::make_unique<ImageDataset>(Shape{1, images.sizes[1], images.sizes[2]}, kIdxClassCount,
                                        std::move(images.elements), std::move(labels.elements));
}

}  // namespace ddproof
