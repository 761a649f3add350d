// The download guard: one process does the work, the others wait, then all use the result.
//
//   main_process_first(context, GuardScope::kNode, [&] { download(path); },
//                      [&] { return open_data(path); });
//
// The usual guard calls a barrier before the work where the local rank is not 0, and after it where
// it is 0, in two places that must agree. Here one call does both, so that it cannot be used
// wrongly:
//   - the work runs exactly once per scope: on every local rank 0 (kNode, for disks of their own),
//     or on rank 0 (kWorld, for a shared disk);
//   - nobody uses the result before the work of every scope is done;
//   - an exception of the work reaches all ranks: the worker gets its own, the others one of the
//     same type (ConfigError, ResourceError, DataError, CommError, otherwise std::runtime_error)
//     with its text;
//   - a worker that dies, or takes longer than the group's timeout, is CommError on the others;
//   - not distributed (local rank -1): the work runs here, and nothing else is called.
//
// The work must make no collective call. Threads: as the group's.
#pragma once

#include <functional>
#include <utility>

#include "backends/api/call_site.h"
#include "backends/api/process_group.h"

namespace ddproof {

enum class GuardScope { kNode, kWorld };

struct GuardContext {
  ProcessGroup* group = nullptr;  // the world; may be null when not distributed
  int local_rank = -1;            // LaunchEnvironment::local_rank
};

// Returns once `work` was done in every scope. A collective call. Throws as above, and ConfigError
// on every rank, naming the rank, when the local ranks of a node are not 0, 1, ... in the order of
// its ranks.
void run_main_process_work(const GuardContext& context, GuardScope scope,
                           const std::function<void()>& work, CallSite site);

// Returns what `use` returns.
template <class Work, class Use>
auto main_process_first(const GuardContext& context, GuardScope scope, Work&& work, Use&& use,
                        CallSite site = CallSite::current()) {
  run_main_process_work(context, scope, std::forward<Work>(work), site);
  return std::forward<Use>(use)();
}

}  // namespace ddproof
