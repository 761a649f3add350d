// A progress line: redrawn in place on a terminal, silent in a pipe.
#pragma once

#include <ostream>
#include <string>

#include "backends/api/time.h"

namespace ddproof {

class Progress {
 public:
  // Draws only when `on_terminal`, at most every kRedraw, and always the last state.
  Progress(std::ostream& out, bool on_terminal) : out_(out), on_terminal_(on_terminal) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `text` follows a bar filled done/total. `now` is the caller's clock.
  void show(std::int64_t done, std::int64_t total, const std::string& text, TimePoint now);
  // Takes the line away, so that other output may follow.
  void clear();

 private:
  static constexpr Duration kRedraw = std::chrono::milliseconds(100);

  std::ostream& out_;
  bool on_terminal_;
  bool drawn_ = false;
  TimePoint last_{0};
};

}  // namespace ddproof
