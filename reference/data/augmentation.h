// What is done to a sample on its way into a batch, so that an epoch shows it in another form.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "reference/compute/tensor.h"

namespace ddproof {

// Changes the values of sample `index` in place. Must depend on nothing but its arguments and what
// it was made with: the same sample gets the same bits on every rank, in every order, after a
// resume. Called from the loader's workers, several at once.
using SampleTransform = std::function<void(std::int64_t index, std::span<float> values)>;

// The usual one for small images: the image is framed by `padding` zeros on each side, a piece of
// the old size is cut out at a random place, and half of the pieces are mirrored left to right. The
// choices come from RandomStream::of_sample(seed, epoch, index).
// Throws ConfigError when `shape` is not {channels, height, width}, or padding is not in 0..1024.
SampleTransform random_crop_and_flip(Shape shape, int padding, std::uint64_t seed,
                                     std::int64_t epoch);

}  // namespace ddproof
