#include "simulator/made_twice.h"

#include <sstream>
#include <utility>

#include "simulator/recorder.h"
#include "simulator/replay.h"
#include "simulator/trace.h"

namespace ddproof::sim {
namespace {

// What differs; empty: nothing.
std::string difference(const RunResult& one, const RunResult& other, const std::string& log,
                       const std::string& other_log) {
  std::istringstream lines(log);
  std::istringstream other_lines(other_log);
  if (const auto found = first_difference(lines, other_lines)) return *found;
  if (one.report.digest != other.report.digest) return "the digests differ\n";
  if (one.failure == other.failure) return "";
  return "the same events end in \"" + one.failure + "\" and in \"" + other.failure + "\"\n";
}

}  // namespace

Program made_twice(Program program) {
  return [program = std::move(program)](const RunSettings& settings) {
    std::ostringstream log;
    TextTrace lines(log);
    TraceTee sinks;
    sinks.add(lines);
    if (settings.trace != nullptr) sinks.add(*settings.trace);
    Recorder recorder(*settings.scheduler);
    RunSettings first = settings;
    first.scheduler = &recorder;
    first.trace = &sinks;
    RunResult result = program(first);

    std::ostringstream other_log;
    TextTrace other_lines(other_log);
    Replay replay(recorder.schedule());
    const RunResult again =
        program({.seed = settings.seed, .scheduler = &replay, .trace = &other_lines});
    const std::string found = difference(result, again, log.str(), other_log.str());
    if (!found.empty()) result.failure = "the program does not repeat itself: " + found;
    return result;
  };
}

}  // namespace ddproof::sim
