#include "reference/train/sampler_agreement.h"

#include <fmt/core.h>

#include "reference/ddp/agreement.h"

namespace ddproof {

void require_same_sampler(ProcessGroup& group, const DistributedSampler& sampler) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  const SamplerOptions& options = sampler.options();
  const bool is_its_own = options.rank == group.rank() && options.replicas == group.size();
  require_same_settings(
      group,
      {{"the sampler's length", text(options.length)},
       {"the sampler's place",
        is_its_own ? "that of its rank" : text(options.rank) + " of " + text(options.replicas)},
       {"the sampler's shuffle", text(options.shuffle)},
       {"the sampler's seed", text(options.seed)},
       {"the sampler's tail", text(name_of(options.tail))},
       {"the sampler's epoch", text(sampler.epoch())}},
      "ranks would draw wrong samples; give every rank the same, and each epoch to set_epoch()");
}

}  // namespace ddproof
