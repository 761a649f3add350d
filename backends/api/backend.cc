#include "backends/api/backend.h"

#include "backends/api/error.h"

namespace ddproof {

void rethrow_root_cause(const std::vector<std::exception_ptr>& by_rank) {
  std::exception_ptr consequence;
  for (const std::exception_ptr& error : by_rank) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const CommError&) {
      if (!consequence) consequence = error;
    }
  }
  if (consequence) std::rethrow_exception(consequence);
}

}  // namespace ddproof
