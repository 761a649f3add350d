// How far a run is: a bar that is redrawn in place on a terminal, a line from time to time where
// somebody watches through a pipe, else silence.
#pragma once

#include <ostream>
#include <string>

#include "backends/api/time.h"

namespace ddproof {

enum class ProgressStyle { kSilent, kLines, kBar };

class Progress {
 public:
  // A bar is drawn at most every kRedraw, a line at most every kLine; both show the last state.
  Progress(std::ostream& out, ProgressStyle style) : out_(out), style_(style) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `text` follows a bar filled done/total. `now` is the caller's clock.
  void show(std::int64_t done, std::int64_t total, const std::string& text, TimePoint now);
  // Takes a bar away, so that other output may follow.
  void clear();

  static constexpr Duration kRedraw = std::chrono::milliseconds(100);
  static constexpr Duration kLine = std::chrono::seconds(1);

 private:
  std::ostream& out_;
  ProgressStyle style_;
  bool drawn_ = false;
  TimePoint last_{0};
};

}  // namespace ddproof
