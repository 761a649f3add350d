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

// Whether the longest size may be right for a rank whose text has `mine` bytes. It comes in a
// message, and one flipped bit would ask for terabytes.
constexpr bool is_text_width(std::uint64_t longest, std::size_t mine) {
  constexpr std::uint64_t kFarAboveAnyText = std::uint64_t{64} << 20;
  return mine <= longest && longest <= kFarAboveAnyText;
}

// The exchange: find the longest size with kMax, gather what pad_text() returns, split it.
// Requires: `text` has at most `width` bytes and no zero byte.
std::vector<std::uint8_t> pad_text(std::string_view text, std::size_t width);
// By rank. Requires: `all` holds `width` bytes of each rank.
std::vector<std::string> split_texts(std::span<const std::uint8_t> all, std::size_t width,
                                     int ranks);

}  // namespace ddproof
