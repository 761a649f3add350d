#include "cli/watched_backend.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "backends/recorder/recorded_process_group.h"
#include "backends/registry/simulated_world.h"

namespace ddproof {
namespace {

// Enough for what is printed of a run that nobody asked to record.
constexpr std::size_t kCallsUnasked = 8;

void write(const std::string& text, const std::string& path, FileSystem& files) {
  if (path.empty()) return;
  OutputFile file(files, path);
  file.stream() << text;
  file.close();
}

}  // namespace

WatchedBackend::WatchedBackend(std::unique_ptr<Backend> inner, const RunFileFlags& flags,
                               FileSystem& files)
    : inner_(std::move(inner)), flags_(flags), files_(files) {
  require_paths_of_their_own(flags);
  if (!flags.has_events() || inner_->capabilities().virtual_time) return;
  throw ConfigError((flags.trace.empty() ? "--log" : "--trace") +
                    (": backend " + std::string(inner_->name())) +
                    " simulates no events; use --backend sim, or --flight-recorder for the calls");
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
  if (flags_.has_events()) return run_traced(options, body);
  return inner_->run_world(options, [&](RankContext& rank) {
    const auto number = static_cast<std::size_t>(rank.group.rank());
    RecordedProcessGroup group(rank.group, rank.runtime, recorders_.at(number));
    RankContext recorded{group, rank.runtime};
    body(recorded);
  });
}

// By the registry's own function, since a Backend has no way to take a trace.
WorldReport WatchedBackend::run_traced(const WorldOptions& options,
                                       const std::function<void(RankContext&)>& body) {
  DDPROOF_CHECK(inner_->name() == "sim");
  std::ostringstream trace, log;
  EventStreams memory(flags_.trace.empty() ? nullptr : &trace, flags_.log.empty() ? nullptr : &log);
  WorldReport report;
  std::exception_ptr failure;
  try {
    sim::TraceSink* const sink = events_ ? events_->sink() : memory.sink();
    report = run_traced_world(options, *sink, recorders_, body);
  } catch (...) {
    failure = std::current_exception();
  }
  memory.finish();
  if (events_) {
    close_files();
  } else {
    trace_ = trace.str();
    log_ = log.str();
    has_events_ = true;
  }
  if (failure) std::rethrow_exception(failure);
  return report;
}

void WatchedBackend::close_files() {
  try {
    events_->close();
  } catch (const DataError&) {
    unwritten_ = std::current_exception();
  }
  events_.reset();
}

std::unique_ptr<ProcessGroup> WatchedBackend::join(const Membership& membership, Runtime& runtime,
                                                   Store& store) {
  start_recorders(1, membership.rank);
  return std::make_unique<RecordedProcessGroup>(inner_->join(membership, runtime, store), runtime,
                                                recorders_.front());
}

void WatchedBackend::open_files() {
  if (flags_.has_events()) events_.emplace(flags_, files_);
  if (!flags_.flight_recorder.empty()) files_.make_directory(flags_.flight_recorder);
}

void WatchedBackend::keep() {
  if (unwritten_) std::rethrow_exception(std::exchange(unwritten_, nullptr));
  if (std::exchange(has_events_, false)) {
    write(trace_, flags_.trace, files_);
    write(log_, flags_.log, files_);
  }
  if (flags_.flight_recorder.empty() || recorders_.empty()) return;
  write_flight_recorders(recorders_, first_rank_, flags_.flight_recorder, files_);
}

void WatchedBackend::print_last_calls(std::ostream& out) const {
  const auto has_called = [](const FlightRecorder& rank) { return !rank.last_calls(1).empty(); };
  if (std::ranges::none_of(recorders_, has_called)) return;
  ddproof::print_last_calls(recorders_, first_rank_, out);
}

void WatchedBackend::tell_of_failure(std::ostream& out) {
  print_last_calls(out);
  try {
    keep();
  } catch (const DataError& error) {
    out << "  " << error.what() << "\n";
  }
}

void WatchedBackend::forget() {
  recorders_.clear();
  has_events_ = false;
}

}  // namespace ddproof
