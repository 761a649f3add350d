#include "cli/run_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/api/error.h"

namespace ddproof {

void declare_run_file_flags(Arguments& arguments, RunFileFlags& flags, const std::string& which) {
  arguments.text("--trace", flags.trace, "write " + which + " as a Chrome trace, for Perfetto");
  arguments.text("--log", flags.log,
                 "write the events of " + which + ", one a line, for ddproof diff");
  arguments.text("--flight-recorder", flags.flight_recorder,
                 "write each rank's last calls in " + which +
                     " as DIR/rank_N.json, with the names of PyTorch's flight recorder");
}

void require_paths_of_their_own(const RunFileFlags& flags,
                                std::vector<std::pair<std::string, std::string>> others) {
  others.insert(others.end(), {{"--trace", flags.trace},
                               {"--log", flags.log},
                               {"--flight-recorder", flags.flight_recorder}});
  for (std::size_t i = 0; i < others.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (others[i].second.empty() || others[i].second != others[k].second) continue;
      throw ConfigError(fmt::format("{} and {} are both \"{}\"; give each a path of its own",
                                    others[k].first, others[i].first, others[i].second));
    }
  }
}

EventStreams::EventStreams(std::ostream* trace, std::ostream* log) {
  if (log != nullptr) sinks_.add(log_.emplace(*log));
  if (trace != nullptr) sinks_.add(trace_.emplace(*trace));
}

EventFiles::EventFiles(const RunFileFlags& flags, FileSystem& files) {
  if (!flags.trace.empty()) trace_.emplace(files, flags.trace);
  if (!flags.log.empty()) log_.emplace(files, flags.log);
  streams_.emplace(trace_ ? &trace_->stream() : nullptr, log_ ? &log_->stream() : nullptr);
}

void EventFiles::close() {
  streams_->finish();
  if (log_) log_->close();
  if (trace_) trace_->close();
}

void write_flight_recorders(const std::vector<FlightRecorder>& recorders, int first_rank,
                            const std::string& folder, FileSystem& files) {
  files.make_directory(folder);
  for (std::size_t i = 0; i < recorders.size(); ++i) {
    const int rank = first_rank + static_cast<int>(i);
    OutputFile file(files, folder + "/rank_" + std::to_string(rank) + ".json");
    file.stream() << recorders[i].to_json();
    file.close();
  }
}

void print_last_calls(const std::vector<FlightRecorder>& recorders, int first_rank,
                      std::ostream& out) {
  constexpr std::size_t kRanksMax = 8, kCallsMax = 2;
  for (std::size_t i = 0; i < std::min(recorders.size(), kRanksMax); ++i) {
    const std::vector<std::string> calls = recorders[i].last_calls(kCallsMax);
    out << fmt::format("  last calls of rank {}: {}\n", first_rank + static_cast<int>(i),
                       calls.empty() ? "none" : fmt::format("{}", fmt::join(calls, "; ")));
  }
  if (recorders.size() > kRanksMax) {
    out << fmt::format("  {} more ranks: --flight-recorder DIR\n", recorders.size() - kRanksMax);
  }
}

}  // namespace ddproof
