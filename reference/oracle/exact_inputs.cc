#include "reference/oracle/exact_inputs.h"

#include <cfenv>

namespace ddproof {
namespace {

std::uint64_t finalised(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t mixed_bits(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  std::uint64_t state = finalised(seed + kGolden);
  state = finalised(state + a + kGolden);
  return finalised(state + b + kGolden);
}

bool runs_exactly(const std::function<void()>& body) {
  std::feclearexcept(FE_ALL_EXCEPT);
  body();  // opaque to the optimiser, so its arithmetic stays between the two calls
  return std::fetestexcept(FE_INEXACT | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID) == 0;
}

}  // namespace ddproof
