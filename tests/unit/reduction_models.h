// Gloo's all-reduce and reduce (allreduce.cc, reduce.cc) on the ports of port_model.h, in elements
// of four bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/gloo/gloo_process_group.h"
#include "tests/unit/port_model.h"

namespace ddproof {

inline constexpr std::uint64_t kElement = sizeof(float);
inline constexpr std::uint64_t kSegmentMax = 1 << 20;  // Gloo's default

inline std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// How Gloo's rings cut up the data: the same number of segments, two or more, to each chunk, all
// but the last ones of the same size in whole elements.
struct RingCut {
  std::uint64_t total;
  std::uint64_t segments_per_chunk;
  std::uint64_t segment;

  // What a chunk has of the data: the last ones may be short or empty.
  Traffic chunk(std::uint64_t index) const {
    const std::uint64_t start = std::min(index * segments_per_chunk * segment, total);
    const std::uint64_t end = std::min(start + segments_per_chunk * segment, total);
    return {divide_up(end - start, segment), end - start};
  }
  // A segment's bytes; empty ones are not sent.
  std::optional<std::uint64_t> bytes_of(std::uint64_t index) const {
    const std::uint64_t start = index * segment;
    if (start >= total) return {};
    return std::min(segment, total - start);
  }
};

// As many segments of at most 1 MiB as it takes, then all of one size.
inline RingCut cut_of_all_reduce(int ranks, std::uint64_t count) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t total = count * kElement;
  const std::uint64_t segments =
      std::max<std::uint64_t>(divide_up(divide_up(total, kSegmentMax), n), 2);
  return {total, segments, divide_up(count, segments * n) * kElement};
}

// Half a chunk, but at most 1 MiB; then as many as it takes.
inline RingCut cut_of_reduce(int ranks, std::uint64_t count) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t total = count * kElement;
  const std::uint64_t segment = std::min(divide_up(count, 2 * n) * kElement, kSegmentMax);
  return {total, std::max<std::uint64_t>(divide_up(divide_up(total, segment), n), 2), segment};
}

// In the first phase (`ahead` 1) a rank begins with the chunk after its own, in the second with its
// own (0); all go to the rank before it.
inline void run_ring_phase(PortModel& model, const RingCut& cut, int ahead, std::uint64_t rounds) {
  const std::uint64_t segments = static_cast<std::uint64_t>(model.ranks()) * cut.segments_per_chunk;
  model.ring(-1, rounds, [&](int rank, std::uint64_t round) {
    const auto first = static_cast<std::uint64_t>(rank + ahead) * cut.segments_per_chunk;
    return cut.bytes_of((first + round) % segments);
  });
}

inline void run_ring(PortModel& model, std::uint64_t count) {
  const RingCut cut = cut_of_all_reduce(model.ranks(), count);
  const std::uint64_t rounds =
      static_cast<std::uint64_t>(model.ranks() - 1) * cut.segments_per_chunk;
  run_ring_phase(model, cut, 1, rounds);
  run_ring_phase(model, cut, 0, rounds);
}

// The sizes of bcube's groups: twos, then the odd rest.
inline std::vector<int> bcube_groups(int ranks) {
  std::vector<int> sizes;
  for (; ranks % 2 == 0; ranks /= 2) sizes.push_back(2);
  if (ranks > 1) sizes.push_back(ranks);
  return sizes;
}

// In each group a rank gives every other its part of what they share; back, it gives its own.
inline void run_bcube(PortModel& model, std::uint64_t count) {
  std::vector<std::uint64_t> shared(static_cast<std::size_t>(model.ranks()), count);
  std::vector<std::vector<Message>> way_back;
  int distance = 1;
  for (const int group : bcube_groups(model.ranks())) {
    std::vector<Message> there, back;
    for (int rank = 0; rank < model.ranks(); ++rank) {
      const int place = rank / distance % group;
      const std::uint64_t length = shared[rank];
      const auto part = [&](int index) {
        const std::uint64_t chunk = divide_up(length, static_cast<std::uint64_t>(group));
        const std::uint64_t start = static_cast<std::uint64_t>(index) * chunk;
        return std::min(chunk, length - std::min(length, start));
      };
      shared[rank] = part(place);
      for (int peer = 0; peer < group; ++peer) {
        if (peer == place) continue;
        const int to = rank + (peer - place) * distance;
        there.push_back({rank, to, part(peer) * kElement});
        back.push_back({rank, to, shared[rank] * kElement});
      }
    }
    model.exchange(there);
    way_back.push_back(back);
    distance *= group;
  }
  for (; !way_back.empty(); way_back.pop_back()) model.exchange(way_back.back());
}

inline PortModel all_reduce_model(AllReduceAlgorithm algorithm, int ranks, std::uint64_t count,
                                  const Net& net) {
  PortModel model(ranks, net);
  if (ranks == 1 || count == 0) return model;
  if (algorithm == AllReduceAlgorithm::kRing) {
    run_ring(model, count);
  } else {
    run_bcube(model, count);
  }
  return model;
}

// The first phase of the ring, then all chunks go to the root. Of its own chunk a rank sends all
// segments but two again, which serves nothing: its receiver gets the chunk anew or drops it.
inline PortModel reduce_model(int ranks, std::uint64_t count, int root, const Net& net) {
  PortModel model(ranks, net);
  if (ranks == 1 || count == 0) return model;
  const RingCut cut = cut_of_reduce(ranks, count);
  const std::uint64_t segments = static_cast<std::uint64_t>(ranks) * cut.segments_per_chunk;
  run_ring_phase(model, cut, 1, segments - 2);
  std::vector<Message> to_root;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint64_t bytes = cut.chunk(static_cast<std::uint64_t>(rank)).bytes;
    if (rank != root && bytes > 0) to_root.push_back({rank, root, bytes});
  }
  model.exchange(to_root);
  return model;
}

}  // namespace ddproof
