// The only ways to fail, and what a caller may do after each.
//
//   ConfigError    The caller's settings: a flag, an environment variable, an argument. The text
//                  names the setting, its value and the allowed range. Fix it and call again.
//   ResourceError  What the machine does not give: an address, a name, a process, a thread. The
//                  text names it and what to do. Free it, or take another, and call again.
//   DataError      A file that was read: the text names file, byte offset and expectation.
//   CommError      The world: a peer is lost, a deadline passed, ranks called different things.
//                  The group is unusable afterwards; make a new one.
//   DDPROOF_CHECK  A bug in ddproof: prints file, line and condition and aborts (check.h).
//
// Text form of CommError: "rank R/N [backend] call: what happened, with both numbers; what to do".
// Values; safe to copy between threads.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ddproof {

class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class CommErrorKind {
  kTimeout,      // a deadline passed
  kPeerLost,     // a peer's process or connection is gone
  kMismatch,     // ranks made different calls
  kUnsupported,  // the backend's capabilities exclude this call
  kAborted,      // abort() was called on this group
  kDeadlock,     // simulator only: the rank can never go on
};

// "timeout", "peer lost", ... for messages and reports.
constexpr const char* to_string(CommErrorKind kind) {
  switch (kind) {
    case CommErrorKind::kTimeout: return "timeout";
    case CommErrorKind::kPeerLost: return "peer lost";
    case CommErrorKind::kMismatch: return "mismatch";
    case CommErrorKind::kUnsupported: return "unsupported";
    case CommErrorKind::kAborted: return "aborted";
    case CommErrorKind::kDeadlock: return "deadlock";
  }
  return "unknown";
}

class CommError : public std::runtime_error {
 public:
  CommError(CommErrorKind kind, const std::string& text, std::vector<int> culprits = {})
      : std::runtime_error(text), kind_(kind), culprits_(std::move(culprits)) {}

  CommErrorKind kind() const { return kind_; }

  // The ranks at fault (lost, late, or odd ones out), in ascending order; empty when unknown.
  const std::vector<int>& culprits() const { return culprits_; }

 private:
  CommErrorKind kind_;
  std::vector<int> culprits_;
};

// What a simulator says of the whole run, on every rank that can never go on: kDeadlock, or
// kMismatch where ranks called on different groups. culprits() are ranks of the world, whatever the
// group.
class VerdictError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace ddproof
