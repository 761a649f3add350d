// The files that tell of a run: --trace, --log, --flight-recorder.
//
// Threads: one; the sink, that of the run.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <utility>
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
  bool any() const { return has_events() || !flight_recorder.empty(); }
};

// `which` run the flags speak of: "the run", "the told run".
void declare_run_file_flags(Arguments& arguments, RunFileFlags& flags, const std::string& which);

// Throws ConfigError when two of these flags name one path: what one writes, the other destroys.
// `others` are more flags and paths, written or read; empty paths are left out.
void require_paths_of_their_own(const RunFileFlags& flags,
                                std::vector<std::pair<std::string, std::string>> others = {});

// Writes the events of one simulated run to streams as they happen; null: not there. Borrowed.
class EventStreams {
 public:
  EventStreams(std::ostream* trace, std::ostream* log);

  // Null when there is no stream.
  sim::TraceSink* sink() { return sinks_.empty() ? nullptr : &sinks_; }
  // Call when the run has ended: the last words.
  void finish() { trace_.reset(); }

 private:
  std::optional<sim::TextTrace> log_;
  std::optional<sim::ChromeTrace> trace_;
  sim::TraceTee sinks_;
};

// The same to the files that are asked for.
class EventFiles {
 public:
  // Makes the files. Throws DataError.
  EventFiles(const RunFileFlags& flags, FileSystem& files);

  sim::TraceSink* sink() { return streams_->sink(); }
  // Call when the run has ended. Throws the first DataError of all that was written.
  void close();

 private:
  std::optional<OutputFile> trace_;
  std::optional<OutputFile> log_;
  std::optional<EventStreams> streams_;
};

// Writes FOLDER/rank_N.json for each recorder, N counting from `first_rank`. Throws DataError.
void write_flight_recorders(const std::vector<FlightRecorder>& recorders, int first_rank,
                            const std::string& folder, FileSystem& files);

// A line for each of the first ranks, with what it called last.
void print_last_calls(const std::vector<FlightRecorder>& recorders, int first_rank,
                      std::ostream& out);

}  // namespace ddproof
