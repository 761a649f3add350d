#include "tests/contract/contract.h"

namespace ddproof::contract {

CommError comm_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "the call did not fail";
  return CommError(CommErrorKind::kUnsupported, "");
}

}  // namespace ddproof::contract
