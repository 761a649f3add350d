// Seeded random numbers with the same values on every machine and compiler.
//
// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014):
// eight bytes of state, so that thousands of ranks can have a stream each.
#pragma once

#include <cstdint>

namespace ddproof::sim {

// A bijection that spreads every input bit over the whole result.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15); }

 private:
  std::uint64_t state_;
};

// Maps 64 random bits to [0, bound) by multiply and shift (Lemire 2019, without the rejection
// step: the bias is below bound / 2^64). Requires: bound > 0.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

}  // namespace ddproof::sim
