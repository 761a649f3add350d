// Turns the bytes that a process writes into whole lines that say who wrote them.
//
// Invariants: every line of the result starts with the prefix and ends with a newline; without the
// prefixes and the newlines added to cut or unfinished lines, the bytes are those that came in.
// Threads: one.
#pragma once

#include <string>
#include <string_view>

namespace ddproof {

class LinePrefix {
 public:
  // A line longer than this is cut, so that a program without newlines cannot fill the memory.
  static constexpr std::size_t kLineBytesMax = 64 * 1024;

  explicit LinePrefix(std::string prefix) : prefix_(std::move(prefix)) {}

  // The lines that are whole now.
  std::string take(std::string_view bytes);
  // The last line, if it has no newline.
  std::string finish();

 private:
  std::string prefix_;
  std::string line_;  // not finished yet
};

}  // namespace ddproof
