#include "cli/watched_backend.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/api/error.h"
#include "backends/recorder/recorded_process_group.h"
#include "backends/registry/simulated_world.h"

namespace ddproof {
namespace {

// Enough for what is printed of a run that nobody asked to record.
constexpr std::size_t kCallsUnasked = 8;

std::string part_of(const std::string& path) { return path.empty() ? path : path + ".part"; }

}  // namespace

WatchedBackend::WatchedBackend(std::unique_ptr<Backend> inner, const RunFileFlags& flags,
                               FileSystem& files)
    : inner_(std::move(inner)), flags_(flags), files_(files) {
  if (flags.has_events() && !inner_->capabilities().virtual_time) {
    throw ConfigError(
        (flags.trace.empty() ? "--log" : "--trace") + (": backend " + std::string(inner_->name())) +
        " simulates no events; use --backend sim, or --flight-recorder for the calls");
  }
  if (!flags.flight_recorder.empty()) files.make_directory(flags.flight_recorder);
}

void WatchedBackend::start_recorders(int count, int first_rank) {
  const FlightRecorder recorder =
      flags_.flight_recorder.empty() ? FlightRecorder(kCallsUnasked) : FlightRecorder();
  recorders_.assign(static_cast<std::size_t>(count), recorder);
  first_rank_ = first_rank;
}

WorldReport WatchedBackend::run_world(const WorldOptions& options,
                                      const std::function<void(RankContext&)>& body) {
  start_recorders(options.world_size, 0);
  if (!flags_.has_events()) {
    return inner_->run_world(options, [&](RankContext& rank) {
      const auto number = static_cast<std::size_t>(rank.group.rank());
      RecordedProcessGroup group(rank.group, rank.runtime, recorders_.at(number));
      RankContext recorded{group, rank.runtime};
      body(recorded);
    });
  }
  EventFiles events({.trace = part_of(flags_.trace), .log = part_of(flags_.log)}, files_);
  WorldReport report;
  std::exception_ptr failure;
  try {
    report = run_traced_world(options, *events.sink(), recorders_, body);
  } catch (...) {
    failure = std::current_exception();
  }
  events.close();
  has_events_ = true;
  if (failure) std::rethrow_exception(failure);
  return report;
}

std::unique_ptr<ProcessGroup> WatchedBackend::join(const Membership& membership, Runtime& runtime,
                                                   Store& store) {
  start_recorders(1, membership.rank);
  return std::make_unique<RecordedProcessGroup>(inner_->join(membership, runtime, store), runtime,
                                                recorders_.front());
}

void WatchedBackend::keep() {
  if (has_events_) {
    for (const std::string& path : {flags_.trace, flags_.log}) {
      if (!path.empty()) files_.rename(part_of(path), path);
    }
    has_events_ = false;
  }
  if (flags_.flight_recorder.empty() || recorders_.empty()) return;
  write_flight_recorders(recorders_, first_rank_, flags_.flight_recorder, files_);
}

void WatchedBackend::forget() {
  recorders_.clear();
  has_events_ = false;
}

void WatchedBackend::print_last_calls(std::ostream& out) const {
  const auto has_called = [](const FlightRecorder& rank) { return !rank.last_calls(1).empty(); };
  if (std::ranges::none_of(recorders_, has_called)) return;
  ddproof::print_last_calls(recorders_, first_rank_, out);
}

}  // namespace ddproof
