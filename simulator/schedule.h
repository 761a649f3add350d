// A schedule: the choices of one run, as data and as one line of text that replays anywhere.
//
// Only choices other than the first runnable fiber are stored, so a schedule that is nearly first
// come, first served is short, however long its run.
//
// Text: "s1.SEED.DECISIONS.CHOICES.CHECK": version, the seed in hexadecimal, how many decisions the
// run made, the choices in letters of base64url, a checksum of all before it. Letters, digits, '.',
// '-' and '_' only: no shell or file name needs quotes.
// Threads: plain data.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ddproof::sim {

// A decision that did not take the first runnable fiber.
struct Choice {
  std::uint64_t decision;  // 0, 1, ...
  std::uint64_t index;     // >= 1
  std::uint64_t count;     // of runnable fibers; > index

  bool operator==(const Choice&) const = default;
};

struct Schedule {
  std::uint64_t seed = 0;
  std::uint64_t decisions = 0;  // that the run made; later ones are not known
  std::vector<Choice> choices;  // ascending by decision, all below `decisions`

  bool operator==(const Schedule&) const = default;
};

// The text is no schedule of this version, or the program is not the one that was recorded.
class ScheduleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string to_string(const Schedule& schedule);
// Throws ScheduleError for a text of another version, one cut short, and a damaged one.
Schedule parse_schedule(std::string_view text);

}  // namespace ddproof::sim
