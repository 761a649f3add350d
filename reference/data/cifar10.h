// CIFAR-10 in its binary version.
//
// Format: records of one label byte and 3,072 pixel bytes, the red, green and blue plane of 32x32
// each. Training: data_batch_1.bin to data_batch_5.bin; test: test_batch.bin; 10,000 records a
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/api/files.h"
#include "reference/data/memory_dataset.h"

namespace ddproof {

inline constexpr std::int64_t kCifar10RecordsPerFile = 10000;

// Samples are {3, 32, 32}; there are 10 classes. Another number of records is for tests.
// Throws DataError naming file, byte offset and expectation when a file is missing, is not exactly
// as long as its records, or has a label above 9.
std::unique_ptr<ImageDataset> read_cifar10(FileSystem& files, const std::string& directory,
                                           Split split,
                                           std::int64_t records_per_file = kCifar10RecordsPerFile);

}  // namespace ddproof
