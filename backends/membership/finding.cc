#include "backends/membership/finding.h"

namespace ddproof {

const char* advice(CommErrorKind kind) {
  switch (kind) {
    case CommErrorKind::kTimeout: return "look at what they do instead, or raise the timeout";
    case CommErrorKind::kMismatch:
      return "compare what both ranks call there, as the checked decorator does; where that is the "
             "same, a message was damaged on its way";
    case CommErrorKind::kAborted: return "make a new group";
    default: return "restart the job from its last checkpoint";
  }
}

CommError comm_error(const ProcessGroup& group, const Call& call, const Finding& finding) {
  return CommError(
      finding.kind,
      group.who() + " " + call.describe() + ": " + finding.what + "; " + advice(finding.kind),
      finding.culprits);
}

}  // namespace ddproof
