// What a failed call looked like on one rank, and what the ranks found out about it. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/api/call.h"
#include "backends/api/error.h"
#include "backends/api/process_group.h"
#include "backends/api/time.h"

namespace ddproof {

// What a rank saw when one of its calls failed inside the library.
struct Symptom {
  bool timed_out = false;        // this rank's own wait ended; else a connection broke
  std::string detail;            // the library's words
  Duration timeout{0};           // of the call
  std::string call = {};         // its description; empty: none, the group is being made
  bool compares = false;         // a comparison of calls
  std::optional<int> peer = {};  // of a send or recv
};

// What was found out about it, the same on every live rank that asks within half a second.
struct Finding {
  CommErrorKind kind = CommErrorKind::kPeerLost;
  std::vector<int> culprits;  // ascending; empty when nobody could be named
  std::string what;           // "rank 2 is lost (its process died)", without a final full stop
};

// What a caller can do about an error of this kind.
const char* advice(CommErrorKind kind);

// The error of `call`: who, which call, what was found, what to do.
CommError comm_error(const ProcessGroup& group, const Call& call, const Finding& finding);
// As that, of calls that are not told apart.
CommError comm_error(const ProcessGroup& group, const Finding& finding);

// What the calls of a rank that aborts are told.
Finding aborted_here();
// "rank 2 is lost (why)".
Finding rank_is_lost(int rank, const std::string& why);

}  // namespace ddproof
