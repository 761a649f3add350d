// What each rank passes to a collective, and what must be there afterwards: for any operation but
// barriers, from what the ranks' elements are. Pure; one call from one task.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/api/process_group.h"

namespace ddproof {

// Whether the operation has a root.
bool has_root(Op op);

// Of one rank. Of a call in place, `out` is the data and `in` is empty.
template <class T>
struct RankData {
  std::vector<T> in;  // unchanged by the call
  std::vector<T> out, out_after;
};

template <class T>
struct CollectivePlan {
  Op op = Op::kAllReduce;  // kSend: a ring, each rank sends to the next one and receives
  int size = 1;            // of the group
  int root = 0;
  std::int64_t count = 0;                                  // of one rank's part
  std::function<T(std::int64_t index, int rank)> element;  // that a rank gives
  std::function<T(std::int64_t index)> result;             // of a reduction

  RankData<T> of(int rank) const {
    const bool is_root = rank == root;
    RankData<T> data;
    switch (op) {
      case Op::kAllReduce:
        data.out = part(rank, 0, count);
        data.out_after = results(0);
        break;
      case Op::kBroadcast:
        data.out = part(rank, 0, count);
        data.out_after = part(root, 0, count);
        break;
      case Op::kReduce:
        data.out = part(rank, 0, count);
        data.out_after = is_root ? results(0) : data.out;
        break;
      case Op::kReduceScatter:
        data.in = part(rank, 0, count * size);
        data.out_after = results(rank * count);
        break;
      case Op::kAllGather:
      case Op::kGather:
        data.in = part(rank, 0, count);
        if (op == Op::kAllGather || is_root) data.out_after = from_each_rank(0);
        break;
      case Op::kScatter:
        if (is_root) data.in = part(rank, 0, count * size);
        data.out_after = part(root, rank * count, count);
        break;
      case Op::kAllToAll:
        data.in = part(rank, 0, count * size);
        data.out_after = from_each_rank(rank * count);
        break;
      default:  // the ring
        data.in = part(rank, 0, count);
        data.out_after = part((rank + size - 1) % size, 0, count);
        break;
    }
    if (data.out.empty()) data.out.resize(data.out_after.size());
    return data;
  }

 private:
  std::vector<T> part(int rank, std::int64_t begin, std::int64_t elements) const {
    std::vector<T> values(static_cast<std::size_t>(elements));
    for (T& value : values) value = element(begin++, rank);
    return values;
  }
  std::vector<T> results(std::int64_t begin) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = result(begin++);
    return values;
  }
  std::vector<T> from_each_rank(std::int64_t begin) const {
    std::vector<T> values;
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<T> theirs = part(rank, begin, count);
      values.insert(values.end(), theirs.begin(), theirs.end());
    }
    return values;
  }
};

// Makes the call with what a plan says, and waits for it. A ring needs more than one rank.
void make_call(ProcessGroup& group, Op op, ReduceOp reduce_op, int root, ConstBuffer in,
               Buffer out);

}  // namespace ddproof
