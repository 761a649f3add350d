// Every collective on simulated ranks, with what each rank ends up with: what tests compare between
// runs that differ in how they are simulated.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "backends/sim/sim_world.h"

namespace ddproof {

inline constexpr std::array kCollectives = {
    Op::kAllReduce, Op::kBroadcast, Op::kReduce,   Op::kAllGather, Op::kReduceScatter,
    Op::kGather,    Op::kScatter,   Op::kAllToAll, Op::kBarrier,   Op::kMonitoredBarrier};

using Values = std::vector<float>;

// Rank r's input; sums of it depend on the order.
inline Values input_of(int rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 1.0f / static_cast<float>(1 + i + 31 * static_cast<std::size_t>(rank));
  }
  return values;
}

// Makes the call with `count` elements a rank, and the rank's input; returns the rank's result.
inline Values call(RankContext& rank, Op op, const Values& mine, int root = 0,
                   ReduceOp reduce_op = ReduceOp::kSum) {
  ProcessGroup& group = rank.group;
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::size_t count = mine.size();
  const bool at_root = group.rank() == root;
  Values data = mine;
  Values result(count);
  Values whole(ranks * count);
  const ConstBuffer in = ConstBuffer::of(mine);
  switch (op) {
    case Op::kAllReduce: group.all_reduce(Buffer::of(data), reduce_op)->wait(); return data;
    case Op::kBroadcast: group.broadcast(Buffer::of(data), root)->wait(); return data;
    case Op::kReduce: group.reduce(Buffer::of(data), root, reduce_op)->wait(); return data;
    case Op::kAllGather: group.all_gather(in, Buffer::of(whole))->wait(); return whole;
    case Op::kReduceScatter:
      for (std::size_t i = 0; i < whole.size(); ++i)
        whole[i] = mine[i % count] + static_cast<float>(i);
      group.reduce_scatter(ConstBuffer::of(whole), Buffer::of(result), reduce_op)->wait();
      return result;
    case Op::kGather:
      if (!at_root) whole.clear();
      group.gather(in, Buffer::of(whole), root)->wait();
      return whole;
    case Op::kScatter:
      if (!at_root) whole.clear();
      for (std::size_t i = 0; i < whole.size(); ++i)
        whole[i] = mine[i % count] + static_cast<float>(i);
      group.scatter(ConstBuffer::of(whole), Buffer::of(result), root)->wait();
      return result;
    case Op::kAllToAll: {
      Values to_each(ranks * count);
      for (std::size_t i = 0; i < whole.size(); ++i)
        to_each[i] = mine[i % count] + static_cast<float>(i);
      group.all_to_all(ConstBuffer::of(to_each), Buffer::of(whole))->wait();
      return whole;
    }
    case Op::kBarrier: group.barrier()->wait(); return {};
    case Op::kMonitoredBarrier: group.monitored_barrier()->wait(); return {};
    case Op::kSend:
    case Op::kRecv: break;
  }
  return {};
}

}  // namespace ddproof
