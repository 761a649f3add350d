#include "cli/run_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ddproof {

void declare_run_file_flags(Arguments& arguments, RunFileFlags& flags, const std::string& which) {
  arguments.text("--trace", flags.trace, "write " + which + " as a Chrome trace, for Perfetto");
  arguments.text("--log", flags.log, "write " + which + "'s events, one a line, for ddproof diff");
  arguments.text("--flight-recorder", flags.flight_recorder,
                 "write each rank's last calls in " + which +
                     " as DIR/rank_N.json, with the names of PyTorch's flight recorder");
}

EventFiles::EventFiles(const RunFileFlags& flags, FileSystem& files) {
  if (!flags.log.empty()) {
    log_file_.emplace(files, flags.log);
    sinks_.add(log_.emplace(log_file_->stream()));
  }
  if (!flags.trace.empty()) {
    trace_file_.emplace(files, flags.trace);
    sinks_.add(trace_.emplace(trace_file_->stream()));
  }
}

void EventFiles::close() {
  trace_.reset();  // its last words
  if (log_file_) log_file_->close();
  if (trace_file_) trace_file_->close();
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
