// A text that is a number and nothing else. Pure functions.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace ddproof {

// Empty when it is none, or not one that the type holds.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace ddproof
