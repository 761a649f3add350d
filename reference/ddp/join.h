// The all-reduces by which ranks with input and ranks that have run out of it stay in step.
//
// Every step of a rank with input begins with announce_step(true); a rank without calls
// announce_step(false) until nobody has input. All methods are collective and synchronous; errors
// are those of ProcessGroup.
// Source: PyTorch 1.13.1's Join, SEMANTICS section 5. Threads: one task at a time.
#pragma once

#include <vector>

#include "backends/api/process_group.h"
#include "reference/ddp/agreement.h"

namespace ddproof {

struct JoinOptions {
  // False: what the caller runs is run as if there were no join.
  bool enable = true;
  // True: gradients are divided by the ranks that there were at first; false: by those that still
  // have input.
  bool divide_by_initial_world_size = true;
  // When a rank runs out of input, all ranks throw ConfigError instead of going on without it.
  bool throw_on_early_termination = false;
};

// What ranks must have in common.
std::vector<Setting> settings_of(const JoinOptions& options);

class Join {
 public:
  // Requires: `group` outlives this; the same options on all ranks.
  Join(ProcessGroup& group, const JoinOptions& options) : group_(group), options_(options) {}

  // How many ranks begin a step. With throw_on_early_termination, throws ConfigError on all ranks
  // when some do and some do not.
  int announce_step(bool has_input);

  // By how many ranks the step's gradients are to be divided. No collective.
  int divisor() const { return options_.divide_by_initial_world_size ? group_.size() : active_; }

  // True on all ranks when some rank passed true.
  bool any_rank(bool flag, const char* label);

  // The largest rank that passed true, whose state the others take. Requires: some rank did.
  int authority(bool candidate);

 private:
  ProcessGroup& group_;
  const JoinOptions options_;
  int active_ = 0;
};

}  // namespace ddproof
