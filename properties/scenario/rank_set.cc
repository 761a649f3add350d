#include "properties/scenario/rank_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backends/api/error.h"

namespace ddproof::scenario {
namespace {

// Reads the numbers of one text.
class Reader {
 public:
  Reader(std::string_view text, std::int64_t end, std::string_view noun)
      : text_(text), end_(end), noun_(noun) {}

  // "3" or "1-3".
  std::pair<std::int64_t, std::int64_t> range(std::string_view part) const {
    const auto dash = part.find('-', 1);
    const std::int64_t first = number(part.substr(0, dash));
    if (dash == std::string_view::npos) return {first, first};
    const std::int64_t last = number(part.substr(dash + 1));
    if (last < first) fail(fmt::format("has the range {}, which runs backwards", part));
    return {first, last};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("\"{}\" {}", text_, what));
  }

 private:
  std::int64_t number(std::string_view digits) const {
    const bool only_digits =
        !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!only_digits) {
      fail(fmt::format("names no {}s; allowed: \"0\", \"1-3\", \"0,4-7\", \"*\", within 0 to {}",
                       noun_, end_ - 1));
    }
    std::int64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (parsed.ec != std::errc{} || value >= end_) {
      fail(fmt::format("names {} {}; allowed: 0 to {}", noun_, digits, end_ - 1));
    }
    return value;
  }

  std::string_view text_;
  std::int64_t end_;
  std::string_view noun_;
};

}  // namespace

RankSet RankSet::parse(std::string_view text, std::int64_t end, std::string_view noun) {
  RankSet set;
  if (text == "*") {
    set.ranges_.emplace_back(0, end - 1);
    return set;
  }
  const Reader reader(text, end, noun);
  for (std::string_view left = text;;) {
    const auto comma = left.find(',');
    set.ranges_.push_back(reader.range(left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  std::ranges::sort(set.ranges_);
  for (std::size_t i = 1; i < set.ranges_.size(); ++i) {
    if (set.ranges_[i].first > set.ranges_[i - 1].second) continue;
    reader.fail(fmt::format("names {} {} twice", noun, set.ranges_[i].first));
  }
  return set;
}

std::vector<std::int64_t> RankSet::numbers() const {
  std::vector<std::int64_t> result;
  for (const auto& [first, last] : ranges_) {
    for (std::int64_t number = first; number <= last; ++number) result.push_back(number);
  }
  return result;
}

bool RankSet::contains(std::int64_t number) const {
  return std::ranges::any_of(ranges_, [number](const auto& range) {
    return range.first <= number && number <= range.second;
  });
}

std::string RankSet::half() const {
  std::string text;
  std::int64_t next = 0;  // what is there already ends before
  for (const auto& [first, last] : ranges_) {
    const std::int64_t from = std::max(first / 2, next);
    if (from > last / 2) continue;
    next = last / 2 + 1;
    text += fmt::format("{}{}", text.empty() ? "" : ",", from);
    if (from < last / 2) text += fmt::format("-{}", last / 2);
  }
  return text;
}

std::optional<std::int64_t> RankSet::overlap(const RankSet& other) const {
  for (const auto& [first, last] : ranges_) {
    for (const auto& [other_first, other_last] : other.ranges_) {
      const std::int64_t from = std::max(first, other_first);
      if (from <= std::min(last, other_last)) return from;
    }
  }
  return std::nullopt;
}

}  // namespace ddproof::scenario
