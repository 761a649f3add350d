// Where our own messages go among Gloo's slots. Gloo builds a slot from an 8-bit prefix per
// collective (1 to 8), a 32-bit tag and 8 bits of its own (gloo/types.h); ours use other prefixes.
#pragma once

#include <cstdint>

namespace ddproof::gloo_operations {

enum class SlotPrefix : std::uint64_t {
  kPointToPoint = 0x20,
  kArrival = 0x21,
  kVerdict = 0x22,
  kTree = 0x23,
};

constexpr std::uint64_t slot(SlotPrefix prefix, std::uint32_t tag) {
  return (static_cast<std::uint64_t>(prefix) << 40) | (std::uint64_t{tag} << 8);
}

}  // namespace ddproof::gloo_operations
