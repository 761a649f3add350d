// What the layers share: shape checks, and tensors that follow the batch size.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "reference/model/initialization.h"
#include "reference/model/module.h"

namespace ddproof {

// "[32, 784]"
std::string to_string(const Shape& shape);

namespace internal {

// Stands for any batch size in an expected shape.
inline constexpr std::int64_t kBatch = -1;

// Throws ConfigError "fc1: input shape [32, 700], expected [batch, 784]".
void check_input(const std::string& layer, const Shape& shape, const Shape& expected);

// Throws ConfigError "conv1: stride 0, expected at least 1".
void check_at_least(const std::string& layer, const char* what, std::int64_t value,
                    std::int64_t least);

// Throws ConfigError "bn1: momentum 2, expected 0 to 1", or "bn1: eps -1, expected at least 0"
// where `most` is infinity.
void check_between(const std::string& layer, const char* what, double value, double least,
                   double most);

// Gives `tensor` this shape; the values are unspecified.
template <class T>
void ensure_shape(Tensor<T>& tensor, Device<T>& device, Shape shape) {
  if (tensor.shape() != shape) tensor = Tensor<T>(device, std::move(shape));
}

template <class T>
Parameter<T> make_parameter(Device<T>& device, std::string name, const Shape& shape,
                            std::int64_t fan_in, std::uint64_t seed) {
  Parameter<T> parameter{std::move(name), Tensor<T>(device, shape), Tensor<T>(device, shape)};
  initialize_uniform(parameter.value, seed, parameter.name, fan_in);
  return parameter;
}

template <class T>
void report_ready(Parameter<T>& parameter, const GradientReady<T>& ready) {
  parameter.has_gradient = true;
  if (ready) ready(parameter);
}

}  // namespace internal
}  // namespace ddproof
