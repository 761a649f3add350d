// Small images for tests of training and evaluation.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "reference/data/memory_dataset.h"

namespace ddproof {

// Small images whose pixels and labels follow from their index.
inline ImageDataset make_images(std::int64_t count) {
  constexpr std::int64_t kPixels = 64;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(i % 10));
    for (std::int64_t p = 0; p < kPixels; ++p) {
      pixels.push_back(static_cast<std::uint8_t>((p * (3 + i % 10) * 5 + i * 7) % 256));
    }
  }
  return ImageDataset({1, 8, 8}, 10, std::move(pixels), std::move(labels));
}

}  // namespace ddproof
