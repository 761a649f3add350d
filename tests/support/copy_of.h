// The elements of a tensor, to compare them with others'.
#pragma once

#include <vector>

#include "reference/compute/tensor.h"

namespace ddproof {

template <class T>
std::vector<T> copy_of(const Tensor<T>& tensor) {
  return {tensor.span().begin(), tensor.span().end()};
}

}  // namespace ddproof
