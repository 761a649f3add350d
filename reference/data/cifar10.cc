#include "reference/data/cifar10.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "reference/data/byte_source.h"

namespace ddproof {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;
constexpr std::size_t kRecord = 1 + kPixels;
constexpr int kClassCount = 10;

void append_file(FileSystem& files, const std::string& path, std::int64_t records,
                 std::vector<std::uint8_t>& pixels, std::vector<std::uint8_t>& labels) {
  const std::unique_ptr<ByteSource> source = open_bytes(files, path);
  std::array<std::uint8_t, kRecord> record{};
  std::uint64_t offset = 0;
  for (std::int64_t i = 0; i < records; ++i, offset += kRecord) {
    read_exactly(*source, record, offset, fmt::format("record {} of {}", i, records));
    if (record[0] >= kClassCount) {
      throw DataError(fmt::format("{}: byte {}: found label {}, expected 0 to {}", path, offset,
                                  record[0], kClassCount - 1));
    }
    labels.push_back(record[0]);
    pixels.insert(pixels.end(), record.begin() + 1, record.end());
  }
  expect_end(*source, offset);
}

}  // namespace

std::unique_ptr<ImageDataset> read_cifar10(FileSystem& files, const std::string& directory,
                                           Split split, std::int64_t records_per_file) {
  std::vector<std::string> names{"test_batch.bin"};
  if (split == Split::kTrain) {
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  }
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  pixels.reserve(names.size() * static_cast<std::size_t>(records_per_file) * kPixels);
  for (const std::string& name : names) {
    append_file(files, directory + "/" + name, records_per_file, pixels, labels);
  }
  return std::make_unique<ImageDataset>(Shape{3, 32, 32}, kClassCount, std::move(pixels),
                                        std::move(labels));
}

}  // namespace ddproof
