// How ranks compare texts and exchange them: what goes into the collectives, and what comes out.
// The calls are the caller's. Values; pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddproof {

// The comparison: reduce `words` over all ranks with kMax, then ask.
struct TextComparison {
  explicit TextComparison(std::string_view text);

  // The maxima of x and of ~x are complements only when all x are equal.
  bool all_equal() const { return words[0] == ~words[1]; }

  std::array<std::uint64_t, 2> words;  // this rank's digest, and its complement
};

// The exchange: find the longest size with kMax, gather what pad_text() returns, split it.
// Requires: `text` has at most `width` bytes and no zero byte.
std::vector<std::uint8_t> pad_text(std::string_view text, std::size_t width);
// By rank. Requires: `all` holds `width` bytes of each rank.
std::vector<std::string> split_texts(std::span<const std::uint8_t> all, std::size_t width,
                                     int ranks);

}  // namespace ddproof
