// The files that tell of a run: --trace, --log, --flight-recorder.
//
// Threads: one; the sink, that of the run.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "backends/recorder/flight_recorder.h"
#include "cli/arguments.h"
#include "cli/output_file.h"
#include "simulator/trace.h"

namespace ddproof {

// Paths; empty: not asked for.
struct RunFileFlags {
  std::string trace;            // Chrome's trace format, for Perfetto
  std::string log;              // one event a line, for ddproof diff
  std::string flight_recorder;  // a folder

  bool has_events() const { return !trace.empty() || !log.empty(); }
};

// `which` run the flags speak of: "the run", "the told run".
void declare_run_file_flags(Arguments& arguments, RunFileFlags& flags, const std::string& which);

// Writes the events of one simulated run as they happen.
class EventFiles {
 public:
  // Makes the files that are asked for. Throws DataError.
  EventFiles(const RunFileFlags& flags, FileSystem& files);

  // Null when no file is asked for. Borrowed.
  sim::TraceSink* sink() { return sinks_.empty() ? nullptr : &sinks_; }
  // Call when the run has ended. Throws the first DataError of all that was written.
  void close();

 private:
  std::optional<OutputFile> log_file_;
  std::optional<OutputFile> trace_file_;
  std::optional<sim::TextTrace> log_;
  std::optional<sim::ChromeTrace> trace_;
  sim::TraceTee sinks_;
};

// Writes FOLDER/rank_N.json for each recorder, N counting from `first_rank`. Throws DataError.
void write_flight_recorders(const std::vector<FlightRecorder>& recorders, int first_rank,
                            const std::string& folder, FileSystem& files);

// A line for each of the first ranks, with what it called last.
void print_last_calls(const std::vector<FlightRecorder>& recorders, int first_rank,
                      std::ostream& out);

}  // namespace ddproof
