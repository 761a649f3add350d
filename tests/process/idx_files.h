// A small data set in MNIST's format, for programs that a test starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ddproof {

inline void write_idx(const std::string& path, const std::vector<std::uint32_t>& sizes,
                      const std::string& elements) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((size >> shift) & 0xff);
  }
  std::ofstream(path, std::ios::binary) << bytes << elements;
}

// Makes the folder, with a training set of `samples` images of 8x8 pixels.
inline void write_small_idx_dataset(const std::string& folder, std::uint32_t samples) {
  std::filesystem::create_directories(folder);
  std::string pixels;
  std::string labels;
  for (std::uint32_t i = 0; i < samples; ++i) {
    labels += static_cast<char>(i % 10);
    for (std::uint32_t p = 0; p < 64; ++p) {
      pixels += static_cast<char>((p * (3 + i % 10) * 5 + i) % 256);
    }
  }
  write_idx(folder + "/train-images-idx3-ubyte", {samples, 8, 8}, pixels);
  write_idx(folder + "/train-labels-idx1-ubyte", {samples}, labels);
}

}  // namespace ddproof
