#include "backends/membership/finding.h"

#include "backends/api/list_of.h"

namespace ddproof {

const char* advice(CommErrorKind kind) {
  switch (kind) {
    case CommErrorKind::kTimeout: return "look at what they do instead, or raise the timeout";
    case CommErrorKind::kMismatch:
      return "make all ranks call the same, in the same order; where they do, a message was "
             "damaged on its way";
    case CommErrorKind::kAborted: return "make a new group";
    default: return "restart the job from its last checkpoint";
  }
}

namespace {

CommError error_of(const std::string& who, const Finding& finding) {
  return CommError(finding.kind, who + ": " + finding.what + "; " + advice(finding.kind),
                   finding.culprits);
}

}  // namespace

CommError comm_error(const ProcessGroup& group, const Call& call, const Finding& finding) {
  return error_of(group.who() + " " + call.describe(), finding);
}

CommError comm_error(const ProcessGroup& group, const Finding& finding) {
  return error_of(group.who(), finding);
}

Finding aborted_here() { return {CommErrorKind::kAborted, {}, "abort() was called on this rank"}; }

Finding rank_is_lost(int rank, const std::string& why) {
  return {CommErrorKind::kPeerLost, {rank}, list_of({rank}) + " is lost (" + why + ")"};
}

}  // namespace ddproof
