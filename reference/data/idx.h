// IDX files, the format of MNIST and Fashion-MNIST, plain or gzip.
//
// Format: two zero bytes, the element type (8: unsigned byte), the number of dimensions, each
// dimension as a big-endian 32-bit number, then the elements in row-major order and nothing after.
// Every departure is a DataError that names file, byte offset (of the unpacked data, for gzip) and
// expectation. Memory is taken only for sizes that the file can hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "reference/data/memory_dataset.h"

namespace ddproof {

struct IdxArray {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> elements;
};

// Reads a file of unsigned bytes with exactly `dimensions` dimensions.
IdxArray read_idx(FileSystem& files, const std::string& path, int dimensions);

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, or the t10k- pair, from a directory;
// each may instead end in ".gz". Samples are {1, rows, columns}; there are 10 classes.
// Throws DataError also when there are no images, the counts of images and labels differ or a label
// is above 9.
std::unique_ptr<ImageDataset> read_idx_dataset(FileSystem& files, const std::string& directory,
                                               Split split);

}  // namespace ddproof
