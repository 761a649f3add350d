#include "backends/sim/whole_data.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/api/check.h"
#include "backends/api/reduce_functions.h"
#include "backends/gloo/operations.h"

namespace ddproof {
namespace {

using Calls = std::span<const Call* const>;

// One vector per rank, which a reduction works in.
struct Vectors {
  std::vector<std::byte*> of_rank;
  std::size_t count = 0;
  std::size_t element = 0;
  ReduceFunction reduce;

  std::size_t ranks() const { return of_rank.size(); }
  // Adds what rank `from` has in these elements to what rank `to` has.
  void add(std::size_t to, std::size_t from, std::size_t first, std::size_t length) const {
    std::byte* const mine = of_rank[to] + first * element;
    reduce(mine, mine, of_rank[from] + first * element, length);
  }
  // Rank 0 takes from another one.
  void collect(std::size_t from, std::size_t first, std::size_t length) const {
    if (from == 0) return;
    std::memcpy(of_rank[0] + first * element, of_rank[from] + first * element, length * element);
  }
};

constexpr std::size_t kSegmentMax = 1 << 20;  // of Gloo's rings

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::byte* bytes_of(const Buffer& buffer) { return static_cast<std::byte*>(buffer.data()); }

// Chunk c travels from rank c-1 downwards round the ring to rank c; each rank adds it to its own.
// How the data are cut into chunks: gloo/allreduce.cc.
void reduce_by_ring(const Vectors& vectors) {
  const std::size_t ranks = vectors.ranks(), element = vectors.element;
  const std::size_t total = vectors.count * element;
  const std::size_t segment_max = element * std::max<std::size_t>(1, kSegmentMax / element);
  const std::size_t segments =
      std::max<std::size_t>(divide_up(divide_up(total, segment_max), ranks), 2);
  const std::size_t chunk = segments * divide_up(divide_up(total, segments * ranks), element);
  for (std::size_t c = 0; c < ranks; ++c) {
    const std::size_t first = std::min(c * chunk, vectors.count);
    const std::size_t length = std::min(chunk, vectors.count - first);
    if (length == 0) break;
    for (std::size_t hop = 2; hop <= ranks; ++hop) {
      vectors.add((c + ranks - hop) % ranks, (c + ranks - hop + 1) % ranks, first, length);
    }
    vectors.collect(c, first, length);
  }
}

// Each chunk as in the ring of all-reduce; the root takes it where it ends. How the data are cut
// into chunks: gloo/reduce.cc.
void reduce_to_root(Calls calls) {
  const Buffer& result = calls[static_cast<std::size_t>(calls[0]->root)]->output;
  const std::size_t ranks = calls.size(), element = result.type().size(), total = result.bytes();
  const std::size_t segment_max = element * std::max<std::size_t>(1, kSegmentMax / element);
  const std::size_t segment =
      element * divide_up(std::min(divide_up(total, 2 * ranks), segment_max), element);
  const std::size_t chunk =
      segment * std::max<std::size_t>(divide_up(divide_up(total, segment), ranks), 2);
  const ReduceFunction reduce = reduce_function(result.type(), calls[0]->reduce_op);
  const std::unique_ptr<std::byte[]> sum(new std::byte[std::min(chunk, total)]);
  for (std::size_t c = 0; c * chunk < total; ++c) {
    const std::size_t first = c * chunk, length = std::min(chunk, total - first);
    const auto part_of = [&](std::size_t rank) { return bytes_of(calls[rank]->output) + first; };
    std::memcpy(sum.get(), part_of((c + ranks - 1) % ranks), length);
    for (std::size_t hop = 2; hop <= ranks; ++hop) {
      reduce(sum.get(), part_of((c + ranks - hop) % ranks), sum.get(), length / element);
    }
    std::memcpy(bytes_of(result) + first, sum.get(), length);
  }
  if (calls[0]->reduce_op == ReduceOp::kAverage) divide(result, static_cast<int>(ranks));
}

// In groups of two as long as two divides the number of ranks, then in one of the odd rest: each
// rank adds up its part of what the group shares.
void reduce_by_bcube(const Vectors& vectors) {
  const std::size_t ranks = vectors.ranks();
  struct Share {
    std::size_t first;
    std::size_t length;
  };
  std::vector<Share> shares(ranks, {0, vectors.count});
  std::size_t distance = 1;
  for (std::size_t rest = ranks; rest > 1;) {
    const std::size_t group = rest % 2 == 0 ? 2 : rest;
    rest /= group;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Share& share = shares[rank];
      const std::size_t place = rank / distance % group;
      const std::size_t part = divide_up(share.length, group);
      const std::size_t start = std::min(place * part, share.length);
      share = {share.first + start, std::min(part, share.length - start)};
      for (std::size_t i = 0; i < group; ++i) {
        const std::size_t peer = rank - place * distance + i * distance;
        if (peer != rank) vectors.add(rank, peer, share.first, share.length);
      }
    }
    distance *= group;
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    vectors.collect(rank, shares[rank].first, shares[rank].length);
  }
}

// The result ends up in the vector of rank 0.
void reduce(const Vectors& vectors, const Call& call, ElementType type, AllReduceAlgorithm wanted) {
  if (gloo_operations::uses_ring(wanted, vectors.count * vectors.element)) {
    reduce_by_ring(vectors);
  } else {
    reduce_by_bcube(vectors);
  }
  if (call.reduce_op != ReduceOp::kAverage) return;
  divide(Buffer(vectors.of_rank[0], type, Layout(static_cast<std::int64_t>(vectors.count))),
         static_cast<int>(vectors.ranks()));
}

void all_reduce(Calls calls, AllReduceAlgorithm wanted) {
  const Buffer& data = calls[0]->output;
  Vectors vectors{.count = static_cast<std::size_t>(data.count()), .element = data.type().size()};
  vectors.reduce = reduce_function(data.type(), calls[0]->reduce_op);
  for (const Call* call : calls) vectors.of_rank.push_back(bytes_of(call->output));
  reduce(vectors, *calls[0], data.type(), wanted);
  for (const Call* call : calls.subspan(1)) {
    std::memcpy(call->output.data(), data.data(), data.bytes());
  }
}

void reduce_scatter(Calls calls, AllReduceAlgorithm wanted) {
  const ConstBuffer& in = calls[0]->input;
  Vectors vectors{.count = static_cast<std::size_t>(in.count()), .element = in.type().size()};
  vectors.reduce = reduce_function(in.type(), calls[0]->reduce_op);
  const std::unique_ptr<std::byte[]> copies(new std::byte[in.bytes() * calls.size()]);
  for (const Call* call : calls) {
    vectors.of_rank.push_back(copies.get() + vectors.of_rank.size() * in.bytes());
    std::memcpy(vectors.of_rank.back(), call->input.data(), in.bytes());
  }
  reduce(vectors, *calls[0], in.type(), wanted);
  const std::byte* part = vectors.of_rank[0];
  for (const Call* call : calls) {
    std::memcpy(call->output.data(), part, call->output.bytes());
    part += call->output.bytes();
  }
}

// Part `place` of a rank's output := part `source` of another's input, in parts of `bytes`.
void move(const Call& to, std::size_t place, const Call& from, std::size_t source,
          std::size_t bytes) {
  const auto* in = static_cast<const std::byte*>(from.input.data()) + source * bytes;
  std::memmove(bytes_of(to.output) + place * bytes, in, bytes);
}

void broadcast(Calls calls) {
  const Buffer& data = calls[static_cast<std::size_t>(calls[0]->root)]->output;
  for (const Call* call : calls) {
    if (call->output.data() != data.data())
      std::memcpy(call->output.data(), data.data(), data.bytes());
  }
}

void all_to_all(Calls calls) {
  const std::size_t part = calls[0]->input.bytes() / calls.size();
  for (std::size_t to = 0; to < calls.size(); ++to) {
    for (std::size_t from = 0; from < calls.size(); ++from) {
      move(*calls[to], from, *calls[from], to, part);
    }
  }
}

void gather(Calls calls, const Call& receiver) {
  for (std::size_t from = 0; from < calls.size(); ++from) {
    move(receiver, from, *calls[from], 0, calls[from]->input.bytes());
  }
}

}  // namespace

void compute_whole_data(Calls calls, AllReduceAlgorithm wanted) {
  const Call& first = *calls[0];
  switch (first.op) {
    case Op::kAllReduce: return all_reduce(calls, wanted);
    case Op::kReduceScatter: return reduce_scatter(calls, wanted);
    case Op::kReduce: return reduce_to_root(calls);
    case Op::kBroadcast: return broadcast(calls);
    case Op::kAllToAll: return all_to_all(calls);
    case Op::kGather: return gather(calls, *calls[static_cast<std::size_t>(first.root)]);
    case Op::kAllGather:
      for (const Call* call : calls) gather(calls, *call);
      return;
    case Op::kScatter:
      for (std::size_t to = 0; to < calls.size(); ++to) {
        move(*calls[to], 0, *calls[static_cast<std::size_t>(first.root)], to, first.output.bytes());
      }
      return;
    case Op::kBarrier:
    case Op::kMonitoredBarrier: return;
    case Op::kSend:
    case Op::kRecv: break;
  }
  DDPROOF_CHECK(false);
}

}  // namespace ddproof
