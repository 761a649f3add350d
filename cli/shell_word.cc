#include "cli/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ddproof {

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "_-./,:=+@%";
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace ddproof
