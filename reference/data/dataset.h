// A labelled data set whose samples can be read in any order.
//
// Invariants: size(), shape and every sample stay the same for life.
// Threads: all methods are const and may be called from any number of tasks at once.
#pragma once

#include <cstdint>
#include <span>

#include "reference/compute/tensor.h"

namespace ddproof {

// Which half of a published data set.
enum class Split : std::uint8_t { kTrain, kTest };

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // Of one sample, without the batch: {channels, height, width} for images. At least one value.
  virtual const Shape& sample_shape() const = 0;
  // Of one sample's labels: {} is one label, {height, width} one for each pixel.
  virtual const Shape& label_shape() const {
    static const Shape one;
    return one;
  }
  virtual int class_count() const = 0;
  // The label of what counts neither in a loss nor in a metric.
  virtual std::int64_t ignored_label() const { return -100; }
  // Of all samples and labels: differs for other data, but for chance. Costs nothing to ask for.
  virtual std::uint64_t digest() const = 0;
  // Writes sample `index` and its labels, each 0 to class_count()-1 or ignored_label().
  // Requires: 0 <= index < size(); values.size() is element_count(sample_shape()), labels.size()
  // element_count(label_shape()).
  virtual void read(std::int64_t index, std::span<float> values,
                    std::span<std::int64_t> labels) const = 0;
};

}  // namespace ddproof
