#include "properties/scenario/recorded_run.h"

#include <fmt/format.h>

#include <charconv>

#include "backends/api/digest.h"
#include "backends/api/error.h"

namespace ddproof::scenario {
namespace {

constexpr std::string_view kVersion = "r1";

std::string check_of(std::string_view text) {
  return fmt::format("{:08x}", digest_of(text) & 0xffff'ffff);
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ConfigError(
      fmt::format("schedule \"{}{}\" {}", text.substr(0, 40), text.size() > 40 ? "..." : "", why));
}

std::uint64_t hexadecimal(std::string_view text, std::string_view whole) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != end) refuse(whole, "is damaged; copy it again");
  return value;
}

}  // namespace

std::uint64_t program_digest(const Scenario& scenario, const sim::FaultPlan& faults) {
  return digest_of(sim::to_string(faults), scenario.digest);
}

std::string to_string(const RecordedRun& run) {
  const std::string head = fmt::format("{}.{:016x}.{:016x}", kVersion, run.program, run.digest);
  return head + "." + check_of(head) + "." + sim::to_string(run.schedule);
}

RecordedRun parse_recorded_run(std::string_view text) {
  const std::string_view version = text.substr(0, text.find('.'));
  if (version == "s1") {
    refuse(text,
           "is a schedule alone; give the whole text that a failing run prints after --schedule");
  }
  if (version != kVersion) {
    refuse(text, fmt::format("has version \"{}\"; this build replays version \"{}\"",
                             version.substr(0, 8), kVersion));
  }
  std::size_t dots[4];
  std::size_t at = 0;
  for (std::size_t& dot : dots) {
    dot = text.find('.', at);
    if (dot == std::string_view::npos) refuse(text, "is cut short; copy the whole line");
    at = dot + 1;
  }
  const std::string_view check = text.substr(dots[2] + 1, dots[3] - dots[2] - 1);
  if (check != check_of(text.substr(0, dots[2]))) {
    refuse(text, "is damaged: its checksum does not match; copy the line again");
  }
  RecordedRun run;
  run.program = hexadecimal(text.substr(dots[0] + 1, dots[1] - dots[0] - 1), text);
  run.digest = hexadecimal(text.substr(dots[1] + 1, dots[2] - dots[1] - 1), text);
  try {
    run.schedule = sim::parse_schedule(text.substr(dots[3] + 1));
  } catch (const sim::ScheduleError& error) {
    throw ConfigError(error.what());
  }
  return run;
}

}  // namespace ddproof::scenario
