// Post-local SGD: at first all ranks average gradients; later only the ranks of a part do (those of
// a node, where links are fast), and the parts meet by averaging their models now and then.
//
// Source: Lin, Stich, Patel, Jaggi, "Don't use large mini-batches, use local SGD", ICLR 2020;
// PyTorch 1.13.1 post_localSGD_hook and PeriodicModelAverager (SEMANTICS section 6).
// Threads: one task at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/ddp/hooks/all_reduce_hook.h"

namespace ddproof {

class PostLocalSgdHook final : public CommHook<float> {
 public:
  // `part`: those of the world that average gradients from step `start_step` (counted from 0) on.
  // With null, from then on nobody does. Requires: it outlives the hook.
  // Throws ConfigError when start_step < 0.
  PostLocalSgdHook(ProcessGroup* part, std::int64_t start_step);

  std::string name() const override { return "post_localSGD"; }
  void start(const GradientBucket<float>& bucket, ProcessGroup& group) override;
  void finish(const GradientBucket<float>& bucket, ProcessGroup& group) override;

 private:
  bool is_local() const { return step_ >= start_step_; }

  ProcessGroup* part_;
  const std::int64_t start_step_;
  std::int64_t step_ = 0;
  AllReduceHook<float> mean_;
};

// Averages the parameters over all ranks, each `period` steps after the first `warmup_steps`.
class PeriodicModelAverager {
 public:
  // Requires: `group` outlives this. Throws ConfigError when period < 1 or warmup_steps < 0.
  PeriodicModelAverager(ProcessGroup& group, std::int64_t period, std::int64_t warmup_steps = 0);

  // Called once after each optimizer step; a collective call when (step - warmup_steps) is a
  // multiple of the period, the first step being number 0. Each parameter is multiplied by the
  // rounded reciprocal of the group's size, then summed.
  void average_parameters(const std::vector<Parameter<float>*>& parameters);

 private:
  ProcessGroup& group_;
  const std::int64_t period_;
  const std::int64_t warmup_steps_;
  std::int64_t step_ = 0;
};

}  // namespace ddproof
