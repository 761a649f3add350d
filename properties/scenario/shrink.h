// Makes a failing scenario small: fewer ranks, steps, faults and choices of the schedule, smaller
// sizes, as long as it fails with the same verdict, told in the same words.
//
// Deterministic. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "properties/scenario/explore.h"

namespace ddproof::scenario {

struct ShrunkScenario {
  std::string text;        // a scenario file
  Scenario scenario;       // what it says
  ScenarioResult result;   // of run_scenario() with it: it fails
  std::uint64_t runs = 0;  // that were tried
};

// Delta debugging (Zeller and Hildebrandt, 2002) over the scenario as data: parts are left out,
// halves first and single ones last, and a change stays if the outcome, and the words of the
// verdict but for numbers, stay as they were. A step goes from all ranks that make it before it
// goes from some, so a program without the bug does not turn into one that has another.
//
// `text` is the file of `scenario`, `failing` what run_scenario() made of it with `seed`; `name` is
// what the new file will be called. Requires: a run is wrong (failing.told.wrong).
// When time runs out (about 10 s), or nothing helps, the result is only as small as it got.
ShrunkScenario shrink_scenario(std::string_view text, const Scenario& scenario,
                               const ScenarioResult& failing, const std::string& name);

// What there is to look at: ranks, and events, which are the steps of all ranks, repeats unrolled,
// faults, and choices of the schedule that are not the first runnable fiber.
struct ScenarioSize {
  int ranks = 0;
  std::int64_t steps = 0;
  std::size_t faults = 0;
  std::size_t choices = 0;

  std::int64_t events() const {
    return steps + static_cast<std::int64_t>(faults) + static_cast<std::int64_t>(choices);
  }
};
// "16 ranks, 480 steps, 1 fault, 12 choices".
std::string to_string(const ScenarioSize& size);
ScenarioSize size_of(const Scenario& scenario, const ScenarioResult& result);

}  // namespace ddproof::scenario
