// A Backend whose runs leave files: what a train or a verify has to show when it fails.
//
// The files of a run lie beside their places, as PATH.part, until keep() puts them there. So the
// files are those of the run that keep() was last called for, however many came after it.
// Threads: as the wrapped backend; one run at a time.
#pragma once

#include <memory>
#include <ostream>
#include <vector>

#include "backends/api/backend.h"
#include "cli/run_files.h"

namespace ddproof {

class WatchedBackend final : public Backend {
 public:
  // Makes the flight recorder's folder. Throws DataError, and ConfigError when events are asked for
  // and the backend simulates none.
  WatchedBackend(std::unique_ptr<Backend> inner, const RunFileFlags& flags, FileSystem& files);

  std::string_view name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return inner_->joins_processes(); }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

  // Call after a run: its files are there then. Throws DataError.
  void keep();
  // Of the last run; nothing when there was none, or none of its ranks called anything.
  void print_last_calls(std::ostream& out) const;
  // As if there was no run yet.
  void forget();

 private:
  void start_recorders(int count, int first_rank);

  std::unique_ptr<Backend> inner_;
  RunFileFlags flags_;
  FileSystem& files_;
  std::vector<FlightRecorder> recorders_;  // of the ranks from first_rank_ on
  int first_rank_ = 0;
  bool has_events_ = false;  // in PATH.part
};

}  // namespace ddproof
