// A set of ranks, or of a loop's turns, as scenarios write it: "0", "1-3", "0,4-7", "*" for all.
//
// A value; ranges in ascending order that do not overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddproof::scenario {

class RankSet {
 public:
  // `noun` is what messages call a number: "rank". Throws ConfigError, a text that says what is
  // allowed, when `text` is no set, has a range that runs backwards or reaches `end`, or names a
  // number twice.
  static RankSet parse(std::string_view text, std::int64_t end, std::string_view noun);

  std::vector<std::int64_t> numbers() const;  // ascending
  bool contains(std::int64_t number) const;
  // The text of the set of its numbers' halves, rounded down: "4,8-9" of "9,16-19".
  std::string half() const;
  // A number that is in both; none: nothing.
  std::optional<std::int64_t> overlap(const RankSet& other) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  // both ends included
};

}  // namespace ddproof::scenario
