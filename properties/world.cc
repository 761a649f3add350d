#include "properties/world.h"

namespace ddproof {

rc::Gen<int> world_sizes(const PropertyWorld& world) {
  return rc::gen::oneOf(rc::gen::just(world.world_size_max),
                        rc::gen::inRange(1, world.world_size_max + 1));
}

void run_ranks(const PropertyWorld& world, int world_size, std::uint64_t seed,
               const std::function<void(RankContext&)>& body) {
  const WorldOptions options{
      .world_size = world_size, .seed = seed, .timeout = std::chrono::minutes(1)};
  world.backend.run_world(options, [&](RankContext& rank) {
    if (!world.wrap_group) return body(rank);
    const std::unique_ptr<ProcessGroup> wrapped = world.wrap_group(rank.group);
    RankContext inner{*wrapped, rank.runtime};
    body(inner);
  });
}

}  // namespace ddproof
