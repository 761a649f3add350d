// The download guard (reference/launch/main_process_first.h): over nodes and ranks per node, ranks
// that arrive and work at drawn times, and work that fails on a drawn scope.
//
//   once      the work runs exactly once per scope (node, or world)
//   before    nobody uses the result before the work of every scope is done
//   together  when the work fails in one scope, every rank learns of it, and nobody uses anything
//
// The guard under test is a function, so that others can bring their own.
#pragma once

#include "properties/world.h"
#include "reference/launch/main_process_first.h"

namespace ddproof {

using Guard =
    std::function<void(const GuardContext& context, GuardScope scope,
                       const std::function<void()>& work, const std::function<void()>& use)>;

// main_process_first() itself.
void reference_guard(const GuardContext& context, GuardScope scope,
                     const std::function<void()>& work, const std::function<void()>& use);

struct GuardCase {
  int nodes = 1;
  int ranks_per_node = 1;
  GuardScope scope = GuardScope::kNode;
  int failing_scope = -1;   // whose work throws; -1: none
  std::vector<int> delays;  // in units of 100 us, taken in turn for arrivals, then for work
  std::uint64_t seed = 0;
};

std::string check_guard(const PropertyWorld& world, const GuardCase& drawn, const Guard& guard);

PropertyResult guard_works_first(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime, const Guard& guard = reference_guard);

}  // namespace ddproof
