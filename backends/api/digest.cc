#include "backends/api/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ddproof {

std::uint64_t digest_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace ddproof
