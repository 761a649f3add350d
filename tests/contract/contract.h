// What the contract tests share: one body for every backend that this build has.
//
// To add a backend, add it to the registry: these tests then run on it (tested_backends.h), but for
// `nccl`, whose devices a test run does not have (registry_backends.cc).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/api/error.h"
#include "tests/contract/tested_backends.h"

namespace ddproof::contract {

class Contract : public ::testing::TestWithParam<std::string> {
 protected:
  bool has_one_rank_only() const { return GetParam() == "single"; }

  std::vector<int> world_sizes() const {
    return has_one_rank_only() ? std::vector{1} : std::vector{1, 2, 3, 4, 5, 8};
  }

  // The body's exception, if any, comes out here.
  WorldReport run(int world_size, const std::function<void(RankContext&)>& body,
                  bool checked = true) const {
    WorldOptions options;
    options.world_size = world_size;
    options.seed = 1;
    options.checked = checked;
    // Far above what any call here takes, so that only a hang meets it.
    options.timeout = std::chrono::seconds(20);
    return make_tested_backend(GetParam())->run_world(options, body);
  }
};

// For tests that need peers.
class PeerContract : public Contract {
 protected:
  void SetUp() override {
    if (has_one_rank_only()) GTEST_SKIP() << "one rank has no peers";
  }
};

inline std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

#define DDPROOF_CONTRACT(Suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Backends, Suite,                                             \
                           ::testing::ValuesIn(::ddproof::contract::tested_backends()), \
                           ::ddproof::contract::name_of)

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which T divides.
template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

// visit(T{}) for the C++ type of every NCCL dtype.
template <class Visitor>
void for_each_type(Visitor&& visit) {
  visit(std::int8_t{});
  visit(std::uint8_t{});
  visit(std::int32_t{});
  visit(std::uint32_t{});
  visit(std::int64_t{});
  visit(std::uint64_t{});
  visit(Float16{});
  visit(BFloat16{});
  visit(float{});
  visit(double{});
}

inline const std::vector<ReduceOp>& all_reduce_ops() {
  static const std::vector<ReduceOp> ops{ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                         ReduceOp::kMax, ReduceOp::kProduct};
  return ops;
}

// Zero, one, odd and large ones.
inline const std::vector<std::int64_t>& counts() {
  static const std::vector<std::int64_t> values{0, 1, 7, 1000, 4097};
  return values;
}

// Rank `rank`'s element i: small integers, so that every sum and product of 8 ranks is exact in
// every type (or wraps, in int8). Negative ones where the type has them.
template <class T>
int input_value(ReduceOp op, int rank, std::int64_t i) {
  if (op == ReduceOp::kProduct) return 1 + static_cast<int>((i + rank) % 2);
  return static_cast<int>((i + 3 * rank) % 5) - (std::is_unsigned_v<T> ? 0 : 2);
}

template <class T>
T to_element(std::int64_t value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
std::vector<T> input_of(ReduceOp op, int rank, std::int64_t count) {
  std::vector<T> data;
  for (std::int64_t i = 0; i < count; ++i)
    data.push_back(to_element<T>(input_value<T>(op, rank, i)));
  return data;
}

template <class T>
T average_of(std::int64_t sum, int size) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum / size);
  else
    return T(static_cast<Wide<T>>(sum) / static_cast<Wide<T>>(size));
}

// Element i of the reduction over ranks 0 to size-1, computed serially in integers.
template <class T>
T reduced_value(ReduceOp op, int size, std::int64_t i) {
  std::int64_t result = input_value<T>(op, 0, i);
  for (int rank = 1; rank < size; ++rank) {
    const std::int64_t value = input_value<T>(op, rank, i);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAverage: result += value; break;
      case ReduceOp::kMin: result = std::min(result, value); break;
      case ReduceOp::kMax: result = std::max(result, value); break;
      case ReduceOp::kProduct: result *= value; break;
    }
  }
  return op == ReduceOp::kAverage ? average_of<T>(result, size) : to_element<T>(result);
}

template <class T>
std::vector<T> reduced(ReduceOp op, int size, std::int64_t count) {
  std::vector<T> data;
  for (std::int64_t i = 0; i < count; ++i) data.push_back(reduced_value<T>(op, size, i));
  return data;
}

template <class T>
Buffer buffer(std::vector<T>& data) {
  return Buffer::of(std::span<T>(data));
}

// What `call` throws, as CommError; fails the test when it throws nothing or something else.
CommError comm_error_of(const std::function<void()>& call);

}  // namespace ddproof::contract
