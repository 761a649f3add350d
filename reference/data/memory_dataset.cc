#include "reference/data/memory_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/digest.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

// Returns the values in one sample.
template <class Label>
std::size_t check_samples(const Shape& sample_shape, int class_count, std::size_t value_count,
                          const std::vector<Label>& labels) {
  const std::int64_t sample_count = element_count(sample_shape);
  if (sample_count < 1) {
    throw ConfigError(
        fmt::format("data set: {} values in a sample, expected at least 1", sample_count));
  }
  if (value_count != labels.size() * static_cast<std::size_t>(sample_count)) {
    throw ConfigError(fmt::format("data set: {} values for {} labels, expected {} a label",
                                  value_count, labels.size(), sample_count));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (static_cast<std::uint64_t>(labels[i]) >= static_cast<std::uint64_t>(class_count)) {
      throw ConfigError(fmt::format("data set: label {} of sample {}, expected 0 to {}", labels[i],
                                    i, class_count - 1));
    }
  }
  return static_cast<std::size_t>(sample_count);
}

template <class Value, class Label>
std::uint64_t digest_of_samples(const std::vector<Value>& values,
                                const std::vector<Label>& labels) {
  return digest_of(std::as_bytes(std::span(labels)), digest_of(std::as_bytes(std::span(values))));
}

std::size_t checked_index(std::int64_t index, std::int64_t size) {
  DDPROOF_CHECK(index >= 0 && index < size);
  return static_cast<std::size_t>(index);
}

}  // namespace

ImageDataset::ImageDataset(Shape sample_shape, int class_count, std::vector<std::uint8_t> pixels,
                           std::vector<std::uint8_t> labels)
    : sample_shape_(std::move(sample_shape)),
      class_count_(class_count),
      sample_count_(check_samples(sample_shape_, class_count, pixels.size(), labels)),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      digest_(digest_of_samples(pixels_, labels_)) {
  for (std::size_t value = 0; value < value_of_.size(); ++value) {
    value_of_[value] = static_cast<float>(value) / 255.0f;
  }
}

void ImageDataset::read(std::int64_t index, std::span<float> values,
                        std::span<std::int64_t> labels) const {
  const std::size_t i = checked_index(index, size());
  DDPROOF_CHECK(values.size() == sample_count_ && labels.size() == 1);
  const std::uint8_t* pixels = pixels_.data() + i * sample_count_;
  for (std::size_t k = 0; k < sample_count_; ++k) values[k] = value_of_[pixels[k]];
  labels[0] = labels_[i];
}

TensorDataset::TensorDataset(Shape sample_shape, int class_count, std::vector<float> values,
                             std::vector<std::int64_t> labels)
    : sample_shape_(std::move(sample_shape)),
      class_count_(class_count),
      sample_count_(check_samples(sample_shape_, class_count, values.size(), labels)),
      values_(std::move(values)),
      labels_(std::move(labels)),
      digest_(digest_of_samples(values_, labels_)) {}

void TensorDataset::read(std::int64_t index, std::span<float> values,
                         std::span<std::int64_t> labels) const {
  const std::size_t i = checked_index(index, size());
  DDPROOF_CHECK(values.size() == sample_count_ && labels.size() == 1);
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(i * sample_count_), sample_count_,
              values.begin());
  labels[0] = labels_[i];
}

}  // namespace ddproof
