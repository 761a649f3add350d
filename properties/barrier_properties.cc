#include "properties/barrier_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>

namespace ddproof {
namespace {

std::string show_barrier(const BarrierCase& c) {
  return fmt::format("world_size={} rounds={} monitored={} delays=[{}] seed={}", c.world_size,
                     c.rounds, c.monitored, fmt::join(c.delays, " "), c.seed);
}

Duration delay_of(const BarrierCase& c, int round, int rank) {
  if (c.delays.empty()) return Duration::zero();
  const auto at = static_cast<std::size_t>(round * c.world_size + rank) % c.delays.size();
  return c.delays[at] * Duration(std::chrono::microseconds(100));
}

std::vector<std::string> classes_of_barrier(const BarrierCase& c, const PropertyWorld& world) {
  std::vector<std::string> classes;
  if (c.world_size == 1) classes.push_back("alone");
  if (c.world_size == world.world_size_max) classes.push_back("full world");
  if (c.monitored) classes.push_back("monitored");
  if (c.rounds > 1) classes.push_back("several rounds");
  for (int rank = 1; rank < c.world_size; ++rank) {
    if (delay_of(c, 0, rank) != delay_of(c, 0, 0)) {
      classes.push_back("ranks apart");
      break;
    }
  }
  return classes;
}

}  // namespace

std::string check_barrier_orders(const PropertyWorld& world, const BarrierCase& c) {
  std::atomic<int> entries = 0;
  // What each rank saw as it left, by round.
  std::vector<std::vector<int>> seen(static_cast<std::size_t>(c.world_size));
  run_ranks(world, c.world_size, c.seed, Checked::kNo, [&](RankContext& rank) {
    for (int round = 0; round < c.rounds; ++round) {
      rank.runtime.sleep_for(delay_of(c, round, rank.group.rank()));
      ++entries;
      (c.monitored ? rank.group.monitored_barrier() : rank.group.barrier())->wait();
      seen[static_cast<std::size_t>(rank.group.rank())].push_back(entries);
    }
  });
  for (int rank = 0; rank < c.world_size; ++rank) {
    for (int round = 0; round < c.rounds; ++round) {
      const int saw = seen[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)];
      const int least = (round + 1) * c.world_size;
      if (saw < least) {
        return fmt::format("rank {} of {} left round {} when only {} of {} had entered", rank,
                           c.world_size, round, saw - round * c.world_size, c.world_size);
      }
      if (saw >= least + c.world_size) {
        return fmt::format("rank {} left round {} two rounds after the others", rank, round);
      }
    }
  }
  return "";
}

PropertyResult barrier_orders(const PropertyWorld& world, const PropertyOptions& options,
                              Runtime& runtime) {
  const auto monitored = world.backend.capabilities().supports(Op::kMonitoredBarrier)
                             ? rc::gen::arbitrary<bool>()
                             : rc::gen::just(false);
  const auto parts = rc::gen::tuple(world_sizes(world), rc::gen::inRange(1, 6), monitored,
                                    rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8)),
                                    rc::gen::arbitrary<std::uint32_t>());
  const auto cases = rc::gen::map(parts, [](const auto& drawn) {
    return BarrierCase{std::get<0>(drawn), std::get<1>(drawn), std::get<2>(drawn),
                       std::get<3>(drawn), std::get<4>(drawn)};
  });
  const Property<BarrierCase> property{
      "barrier-orders", cases, show_barrier,
      [&world](const BarrierCase& c) { return classes_of_barrier(c, world); },
      [&world](const BarrierCase& c) { return check_barrier_orders(world, c); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
