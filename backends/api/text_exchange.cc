#include "backends/api/text_exchange.h"

#include <algorithm>

#include "backends/api/digest.h"

namespace ddproof {

TextComparison::TextComparison(std::string_view text) {
  const std::uint64_t digest = digest_of(text);
  words = {digest, ~digest};
}

std::vector<std::uint8_t> pad_text(std::string_view text, std::size_t width) {
  std::vector<std::uint8_t> padded(text.begin(), text.end());
  padded.resize(width, 0);
  return padded;
}

std::vector<std::string> split_texts(std::span<const std::uint8_t> all, std::size_t width,
                                     int ranks) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto text = all.subspan(static_cast<std::size_t>(rank) * width, width);
    texts.emplace_back(text.begin(), std::ranges::find(text, 0));
  }
  return texts;
}

}  // namespace ddproof
