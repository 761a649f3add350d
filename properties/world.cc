#include "properties/world.h"

#include <algorithm>

namespace ddproof {

rc::Gen<int> world_sizes(const PropertyWorld& world) {
  // One range, so that it shrinks to 1; of nominal size, so that early cases are not all alone.
  const int most = world.world_size_max;
  const auto range = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, 2 * most));
  return rc::gen::map(range, [most](int drawn) { return std::min(drawn, most); });
}

void run_ranks(const PropertyWorld& world, int world_size, std::uint64_t seed, Checked checked,
               const std::function<void(RankContext&)>& body) {
  const WorldOptions options{.world_size = world_size,
                             .seed = seed,
                             .timeout = std::chrono::minutes(1),
                             .checked = checked == Checked::kYes};
  world.backend.run_world(options, [&](RankContext& rank) {
    if (!world.wrap_group) return body(rank);
    const std::unique_ptr<ProcessGroup> wrapped = world.wrap_group(rank.group);
    RankContext inner{*wrapped, rank.runtime};
    body(inner);
  });
}

}  // namespace ddproof
