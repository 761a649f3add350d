#include "backends/membership/finding.h"

namespace ddproof {

const char* advice(CommErrorKind kind) {
  switch (kind) {
    case CommErrorKind::kTimeout: return "look at what they do instead, or raise the timeout";
    case CommErrorKind::kMismatch: return "turn the checked decorator on to see whose call differs";
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
