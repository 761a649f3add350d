#include "reference/ddp/hooks/post_local_sgd.h"

#include "backends/api/error.h"

namespace ddproof {

PostLocalSgdHook::PostLocalSgdHook(ProcessGroup* part, std::int64_t start_step)
    : part_(part), start_step_(start_step) {
  if (start_step < 0) {
    throw ConfigError("post_localSGD: start step " + std::to_string(start_step) +
                      ", expected 0 or more");
  }
}

void PostLocalSgdHook::start(const GradientBucket<float>& bucket, ProcessGroup& group) {
  if (!is_local()) return mean_.start(bucket, group);
  if (part_ != nullptr) mean_.start(bucket, *part_);
}

void PostLocalSgdHook::finish(const GradientBucket<float>& bucket, ProcessGroup& group) {
  if (!is_local() || part_ != nullptr) mean_.finish(bucket, group);
  if (bucket.is_last) ++step_;
}

PeriodicModelAverager::PeriodicModelAverager(ProcessGroup& group, std::int64_t period,
                                             std::int64_t warmup_steps)
    : group_(group), period_(period), warmup_steps_(warmup_steps) {
  const auto require = [](const char* what, std::int64_t value, std::int64_t least) {
    if (value >= least) return;
    throw ConfigError(std::string("periodic model averager: ") + what + " " +
                      std::to_string(value) + ", expected at least " + std::to_string(least));
  };
  require("period", period, 1);
  require("warmup steps", warmup_steps, 0);
}

void PeriodicModelAverager::average_parameters(const std::vector<Parameter<float>*>& parameters) {
  const std::int64_t step = step_++;
  if (step < warmup_steps_ || (step - warmup_steps_) % period_ != 0) return;
  std::vector<WorkPtr> works;
  for (Parameter<float>* parameter : parameters) {
    works.push_back(start_mean(parameter->value, group_, "average of " + parameter->name));
  }
  for (const WorkPtr& work : works) work->wait();
}

}  // namespace ddproof
