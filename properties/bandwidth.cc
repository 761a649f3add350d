#include "properties/bandwidth.h"

#include <array>

#include "properties/collective_plan.h"
#include "reference/compute/tensor.h"

namespace ddproof {
namespace {

// Into how many parts, one for each rank, the larger side of a call is divided.
std::int64_t parts_of(Op op, int world_size) {
  switch (op) {
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kGather:
    case Op::kScatter:
    case Op::kAllToAll: return world_size;
    default: return 1;
  }
}

// Small integers: their sums are exact.
CollectivePlan<float> plan_of(Op op, int size, std::int64_t count) {
  const auto element = [](std::int64_t index, int rank) {
    return static_cast<float>((index + rank) % 8);
  };
  const auto sum = [element, size](std::int64_t index) {
    float total = 0;
    for (int rank = 0; rank < size; ++rank) total += element(index, rank);
    return total;
  };
  return {.op = op, .size = size, .root = 0, .count = count, .element = element, .result = sum};
}

Tensor<float> to_device(Device<float>& device, const std::vector<float>& values) {
  Tensor<float> tensor(device, {static_cast<std::int64_t>(values.size())});
  if (!values.empty()) device.copy_from_host(tensor.data(), values.data(), tensor.count());
  return tensor;
}

std::int64_t count_differences(const std::vector<float>& seen, const std::vector<float>& expected) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) count += seen[i] != expected[i] ? 1 : 0;
  return count;
}

std::int64_t over_ranks(ProcessGroup& group, std::int64_t mine, ReduceOp op) {
  std::array<std::int64_t, 1> value{mine};
  group.all_reduce(Buffer::of(value), op)->wait();
  return value[0];
}

}  // namespace

double bus_factor(Op op, int world_size) {
  const double n = world_size;
  if (op == Op::kAllReduce) return 2 * (n - 1) / n;
  return parts_of(op, world_size) > 1 ? (n - 1) / n : 1;
}

BandwidthRow measure_bandwidth(RankContext& rank, Device<float>& device,
                               const BandwidthOptions& options) {
  ProcessGroup& group = rank.group;
  const std::int64_t parts = parts_of(options.op, group.size());
  const std::int64_t count = options.bytes / std::int64_t{sizeof(float)} / parts;
  const RankData<float> data = plan_of(options.op, group.size(), count).of(group.rank());
  Tensor<float> in = to_device(device, data.in), out = to_device(device, data.out);
  const auto call = [&] {
    make_call(group, options.op, ReduceOp::kSum, 0, in.buffer(), out.buffer());
  };
  // A copy to the host comes after all that the device has to do.
  const auto finish = [&] {
    const Tensor<float>& any = out.count() > 0 ? out : in;
    float value = 0;
    if (any.count() > 0) device.copy_to_host(&value, any.data(), 1);
  };

  BandwidthRow row;
  row.count = count * parts;
  row.bytes = row.count * std::int64_t{sizeof(float)};
  call();
  row.wrong = over_ranks(group, count_differences(to_host(out), data.out_after), ReduceOp::kSum);
  for (int i = 0; i < options.warm_up; ++i) call();
  finish();
  group.barrier()->wait();
  const TimePoint begin = rank.runtime.now();
  for (int i = 0; i < options.calls; ++i) call();
  finish();
  const std::int64_t longest =
      over_ranks(group, (rank.runtime.now() - begin).count(), ReduceOp::kMax);
  row.seconds = static_cast<double>(longest) * 1e-9 / options.calls;
  if (longest > 0) row.algorithm_bandwidth = static_cast<double>(row.bytes) / row.seconds;
  row.bus_bandwidth = row.algorithm_bandwidth * bus_factor(options.op, group.size());
  return row;
}

}  // namespace ddproof
