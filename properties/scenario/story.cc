#include "properties/scenario/story.h"

#include <fmt/format.h>

namespace ddproof::scenario {

std::string to_string(const StoryLine& line) {
  std::string text =
      fmt::format("{:>12}  {:{}}{}", sim::format_time(line.begin), "", 2 * line.depth, line.step);
  if (!line.outcome.empty()) {
    text += fmt::format(": {} at {}", line.outcome, sim::format_time(line.end));
  } else if (line.end == sim::kNever) {
    text += ": never ended";
  } else if (line.end != line.begin) {
    text += fmt::format(": done at {}", sim::format_time(line.end));
  }
  return text;
}

}  // namespace ddproof::scenario
