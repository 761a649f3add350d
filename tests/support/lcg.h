// The generator of tests/golden: 24-bit draws of a 64-bit linear congruential generator.
#pragma once

#include <cstdint>

namespace ddproof {

class Lcg {
 public:
  explicit Lcg(std::uint64_t seed) : state_(seed) {}
  std::int64_t draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state_ >> 40);
  }
  // A multiple of 2^-23 in [-1, 1), exact in float.
  double unit() { return static_cast<double>(draw() - (1 << 23)) * 0x1p-23; }

 private:
  std::uint64_t state_;
};

}  // namespace ddproof
