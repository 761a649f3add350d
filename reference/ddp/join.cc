#include "reference/ddp/join.h"

#include <array>
#include <cstdint>

#include "backends/api/error.h"

namespace ddproof {

std::vector<Setting> settings_of(const JoinOptions& options) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return {{"divide_by_initial_world_size", flag(options.divide_by_initial_world_size)},
          {"throw_on_early_termination", flag(options.throw_on_early_termination)}};
}

int Join::announce_step(bool has_input) {
  std::array<std::int32_t, 1> active{has_input ? 1 : 0};
  group_.all_reduce(Buffer::of(active), ReduceOp::kSum, {.label = "join: ranks with input"})
      ->wait();
  active_ = active[0];
  if (!options_.throw_on_early_termination || active_ == 0) return active_;
  if (!any_rank(!has_input, "join: early termination")) return active_;
  throw ConfigError(group_.who() + " join: " +
                    (has_input ? "another rank has run out of input"
                               : "this rank has run out of input, others have not") +
                    "; give every rank the same number of batches, or unset "
                    "throw_on_early_termination");
}

bool Join::any_rank(bool flag, const char* label) {
  std::array<std::int32_t, 1> flags{flag ? 1 : 0};
  group_.all_reduce(Buffer::of(flags), ReduceOp::kMax, {.label = label})->wait();
  return flags[0] != 0;
}

int Join::authority(bool candidate) {
  std::array<std::int32_t, 1> rank{candidate ? group_.rank() : -1};
  group_.all_reduce(Buffer::of(rank), ReduceOp::kMax, {.label = "join: authority"})->wait();
  if (rank[0] < 0 || rank[0] >= group_.size()) throw_damaged(group_, "join: authority");
  return rank[0];
}

}  // namespace ddproof
