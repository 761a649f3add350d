#include "properties/random_stream_properties.h"

#include <fmt/format.h>

#include "reference/data/random_stream.h"

namespace ddproof {
namespace {

// Enough that equal numbers are no chance: two streams of 10 draws of 32 bits.
constexpr int kDraws = 10;

std::string show_random_stream(const WorkerStreamsCase& c) {
  return fmt::format("world_size={} workers={} seed={} epoch={}", c.world_size, c.workers, c.seed,
                     c.epoch);
}

std::string name_of(const WorkerKey& key) {
  return fmt::format("rank {}'s worker {} in epoch {}", key.rank, key.worker, key.epoch);
}

rc::Gen<WorkerStreamsCase> worker_streams_cases() {
  const auto parts = rc::gen::tuple(rc::gen::inRange(1, 9), rc::gen::inRange(1, 9),
                                    rc::gen::arbitrary<std::uint32_t>(), rc::gen::inRange(0, 1000));
  return rc::gen::map(parts, [](const auto& drawn) {
    return WorkerStreamsCase{.seed = std::get<2>(drawn),
                             .epoch = std::get<3>(drawn),
                             .world_size = std::get<0>(drawn),
                             .workers = std::get<1>(drawn)};
  });
}

std::vector<std::string> classes_of_random_stream(const WorkerStreamsCase& c) {
  std::vector<std::string> classes;
  if (c.world_size > 1) classes.push_back("many ranks");
  if (c.workers > 1) classes.push_back("many workers");
  return classes;
}

}  // namespace

std::vector<std::uint64_t> draw_reference_numbers(const WorkerKey& key, int count) {
  RandomStream stream = RandomStream::of_worker(key.seed, key.epoch, key.rank, key.worker);
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(stream.next());
  return numbers;
}

std::string check_distinct_streams(const WorkerStreamsCase& drawn, const DrawWorkerNumbers& draw) {
  std::map<std::vector<std::uint64_t>, WorkerKey> seen;
  for (const std::int64_t epoch : {drawn.epoch, drawn.epoch + 1}) {
    for (int rank = 0; rank < drawn.world_size; ++rank) {
      for (int worker = 0; worker < drawn.workers; ++worker) {
        const WorkerKey key{drawn.seed, epoch, rank, worker, drawn.world_size, drawn.workers};
        const auto [earlier, is_new] = seen.emplace(draw(key, kDraws), key);
        if (is_new) continue;
        return fmt::format("distinct streams: {} draws the same {} numbers as {}", name_of(key),
                           kDraws, name_of(earlier->second));
      }
    }
  }
  return "";
}

PropertyResult distinct_streams(const PropertyOptions& options, Runtime& runtime,
                                const DrawWorkerNumbers& draw) {
  const Property<WorkerStreamsCase> property{
      "distinct-streams", worker_streams_cases(), show_random_stream, classes_of_random_stream,
      [&draw](const WorkerStreamsCase& c) { return check_distinct_streams(c, draw); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
