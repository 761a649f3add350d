// Traces for people: a text log, Chrome's trace format, and where two logs first differ.
//
// Threads: as the run that a sink is given to. Streams are borrowed for the sink's life; a stream
// that fails keeps its error state, for the caller to look at.
#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/event.h"

namespace ddproof::sim {

// One event a line; the legend is in simulator/README.md.
class TextTrace final : public TraceSink {
 public:
  explicit TextTrace(std::ostream& out) : out_(out) {}
  void on_event(const Event& event) override;

 private:
  std::ostream& out_;
};

// JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open. One process a rank. Its thread 0
// has the messages, with an arrow from each send to its delivery; each fiber is a thread, with a
// slice per operation and, inside, one per wait.
//
// Format: "Trace Event Format" (Google, 2016). Times are in microseconds with three digits, so that
// every nanosecond shows.
class ChromeTrace final : public TraceSink {
 public:
  explicit ChromeTrace(std::ostream& out);
  // Ends the slices that are open and the JSON.
  ~ChromeTrace() override;
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;
  void on_event(const Event& event) override;

 private:
  struct Thread {
    int rank = 0;
    bool in_operation = false;
    bool in_wait = false;
  };

  void add(std::string_view fields);
  void name_rank(int rank);
  void begin_slice(const Event& event, std::string_view category);
  void end_slice(std::uint64_t fiber, int rank);
  void end_thread(std::uint64_t fiber);
  void message(const Event& event);
  void instant(const Event& event);

  std::ostream& out_;
  bool is_first_ = true;
  Time now_ = 0;
  std::set<int> named_;                                                 // ranks
  std::map<std::uint64_t, Thread> threads_;                             // by fiber, until it ends
  std::map<std::pair<int, int>, std::deque<std::uint64_t>> in_flight_;  // flows, by pair
  std::uint64_t flows_ = 0;
};

// Gives every event to several sinks, which are borrowed.
class TraceTee final : public TraceSink {
 public:
  void add(TraceSink& sink) { sinks_.push_back(&sink); }
  bool empty() const { return sinks_.empty(); }
  void on_event(const Event& event) override {
    for (TraceSink* sink : sinks_) sink->on_event(event);
  }

 private:
  std::vector<TraceSink*> sinks_;
};

// Where two text logs differ first: the line's number, both lines, and the ones before them that
// are the same, at most `context`. Nothing when the logs are equal.
std::optional<std::string> first_difference(std::istream& one, std::istream& other,
                                            std::size_t context = 3);

}  // namespace ddproof::sim
