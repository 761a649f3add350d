// A Backend whose runs leave files: what a train or a verify has to show when it fails.
//
// The files are those of the run that keep() was last called for, however many came after it.
// Threads: as the wrapped backend; one run at a time.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "backends/api/backend.h"
#include "cli/run_files.h"

namespace ddproof {

class WatchedBackend final : public Backend {
 public:
  // Throws ConfigError when events are asked for and the backend simulates none, and as
  // require_paths_of_their_own().
  WatchedBackend(std::unique_ptr<Backend> inner, const RunFileFlags& flags, FileSystem& files);

  std::string_view name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return inner_->joins_processes(); }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

  // Makes the files, so that what cannot be written is told before the run; the events of the one
  // run to come are then written as they happen, and not kept in memory. Throws DataError.
  void open_files();
  // After a run: writes what is not written yet. Throws DataError.
  void keep();
  // What the ranks of the last run called last, a line each; nothing when they called nothing.
  void print_last_calls(std::ostream& out) const;
  // After a run that failed: both of these. A file that cannot be written is one more line.
  void tell_of_failure(std::ostream& out);
  // As if there was no run yet.
  void forget();
  bool has_run() const { return !recorders_.empty(); }

 private:
  void start_recorders(int count, int first_rank);
  WorldReport run_traced(const WorldOptions& options,
                         const std::function<void(RankContext&)>& body);
  void close_files();

  std::unique_ptr<Backend> inner_;
  RunFileFlags flags_;
  FileSystem& files_;
  std::vector<FlightRecorder> recorders_;  // of the ranks from first_rank_ on
  int first_rank_ = 0;
  std::optional<EventFiles> events_;  // of the run to come, when they were opened
  std::exception_ptr unwritten_;      // why the files that were opened are not whole
  bool has_events_ = false;           // in memory, not kept
  std::string trace_, log_;
};

}  // namespace ddproof
