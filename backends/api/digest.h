// A 64-bit digest of bytes (XXH3): equal bytes give equal digests on every machine; different bytes
// give different ones but for chance. For comparing ranks and runs, not for security. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ddproof {

std::uint64_t digest_of(std::span<const std::byte> bytes, std::uint64_t seed = 0);

inline std::uint64_t digest_of(std::string_view text, std::uint64_t seed = 0) {
  return digest_of(std::as_bytes(std::span(text)), seed);
}

}  // namespace ddproof
