// Data sets held in memory: bytes as published image sets have them, or floats as computed.
//
// Immutable after construction; see dataset.h for the thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/data/dataset.h"

namespace ddproof {

// Images of unsigned bytes. A pixel reads as value / 255, correctly rounded: 0 to 1, as
// torchvision's ToTensor gives it. There is no further normalisation.
class ImageDataset final : public Dataset {
 public:
  // Throws ConfigError when the shape has no value, pixels are not labels.size() samples of it, or
  // a label is not below class_count.
  ImageDataset(Shape sample_shape, int class_count, std::vector<std::uint8_t> pixels,
               std::vector<std::uint8_t> labels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  const Shape& sample_shape() const override { return sample_shape_; }
  int class_count() const override { return class_count_; }
  std::uint64_t digest() const override { return digest_; }
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override;

 private:
  Shape sample_shape_;
  int class_count_;
  std::size_t sample_count_;  // values in one sample
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
  std::uint64_t digest_;
  std::array<float, 256> value_of_;
};

// Floats, read as they are.
class TensorDataset final : public Dataset {
 public:
  // Throws ConfigError as ImageDataset does.
  TensorDataset(Shape sample_shape, int class_count, std::vector<float> values,
                std::vector<std::int64_t> labels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  const Shape& sample_shape() const override { return sample_shape_; }
  int class_count() const override { return class_count_; }
  std::uint64_t digest() const override { return digest_; }
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override;

 private:
  Shape sample_shape_;
  int class_count_;
  std::size_t sample_count_;  // values in one sample
  std::vector<float> values_;
  std::vector<std::int64_t> labels_;
  std::uint64_t digest_;
};

}  // namespace ddproof
