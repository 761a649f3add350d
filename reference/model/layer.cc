#include "reference/model/layer.h"

#include <fmt/format.h>

#include <cmath>

namespace ddproof {
namespace {

std::string bracketed(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == internal::kBatch ? "batch" : std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

std::string to_string(const Shape& shape) { return bracketed(shape); }

namespace internal {

void check_input(const std::string& layer, const Shape& shape, const Shape& expected) {
  bool same = shape.size() == expected.size();
  for (std::size_t i = 0; same && i < shape.size(); ++i) {
    same = expected[i] == kBatch ? shape[i] >= 0 : shape[i] == expected[i];
  }
  if (same) return;
  throw ConfigError(layer + ": input shape " + bracketed(shape) + ", expected " +
                    bracketed(expected));
}

void check_at_least(const std::string& layer, const char* what, std::int64_t value,
                    std::int64_t least) {
  if (value >= least) return;
  throw ConfigError(layer + ": " + what + " " + std::to_string(value) + ", expected at least " +
                    std::to_string(least));
}

void check_between(const std::string& layer, const char* what, double value, double least,
                   double most) {
  if (value >= least && value <= most) return;
  const std::string range =
      std::isinf(most) ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
  throw ConfigError(fmt::format("{}: {} {}, expected {}", layer, what, value, range));
}

}  // namespace internal
}  // namespace ddproof
