#include "properties/collective_properties.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <type_traits>

#include "backends/api/visit_dtype.h"
#include "properties/collective_plan.h"
#include "reference/oracle/exact_inputs.h"

namespace ddproof {
namespace {

std::string show_collective(const CollectiveCase& c) {
  std::string text = fmt::format("op={} world_size={} type={}", to_string(c.op), c.world_size,
                                 ElementType(c.type).name());
  if (reduces(c.op)) text += fmt::format(" reduce_op={}", to_string(c.reduce_op));
  if (has_root(c.op)) text += fmt::format(" root={}", c.root);
  return text + fmt::format(" count={} seed={}", c.count, c.seed);
}

std::vector<std::string> classes_of_collective(const CollectiveCase& c,
                                               const PropertyWorld& world) {
  std::vector<std::string> classes = {to_string(c.op)};
  if (c.count == 0) classes.push_back("empty");
  if (has_root(c.op) && c.root != 0) classes.push_back("root is not rank 0");
  if (c.world_size == world.world_size_max) classes.push_back("full world");
  return classes;
}

// A rank's element.
template <class T>
T reduction_input(const ExactInputs<T>& inputs, ReduceOp op, std::int64_t index, int rank) {
  return op == ReduceOp::kProduct ? inputs.factor(index, rank) : inputs.addend(index, rank);
}

// The reduction over all ranks.
template <class T>
T reduction_result(const ExactInputs<T>& inputs, ReduceOp op, std::int64_t index) {
  switch (op) {
    case ReduceOp::kSum: return inputs.sum(index);
    case ReduceOp::kAverage: return inputs.average(index);
    case ReduceOp::kMin: return inputs.minimum(index);
    case ReduceOp::kMax: return inputs.maximum(index);
    case ReduceOp::kProduct: return inputs.product(index);
  }
  return T{};
}

template <class T>
std::string show_element(T value) {
  if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (sizeof(T) == 2)
    return fmt::format("{}", static_cast<float>(value));
  else
    return fmt::format("{}", value);
}

// "element 3 of 8 is 1, expected 2", of the first one whose bits differ; empty when none does.
// Requires: equally many.
template <class T>
std::string first_difference(std::span<const T> seen, std::span<const T> expected) {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (std::memcmp(&seen[i], &expected[i], sizeof(T)) == 0) continue;
    return fmt::format("element {} of {} is {}, expected {}", i, seen.size(), show_element(seen[i]),
                       show_element(expected[i]));
  }
  return "";
}

template <class T>
std::string check_as(const PropertyWorld& world, const CollectiveCase& c) {
  const ExactInputs<T> inputs(c.seed, c.world_size);
  const CollectivePlan<T> plan{
      .op = c.op,
      .size = c.world_size,
      .root = c.root,
      .count = c.count,
      .element = [&](std::int64_t i,
                     int rank) { return reduction_input(inputs, c.reduce_op, i, rank); },
      .result = [&](std::int64_t i) { return reduction_result(inputs, c.reduce_op, i); }};
  std::vector<std::string> wrong(static_cast<std::size_t>(c.world_size));
  run_ranks(world, c.world_size, c.seed, Checked::kNo, [&](RankContext& rank) {
    RankData<T> data = plan.of(rank.group.rank());
    const std::vector<T> input = data.in;
    make_call(rank.group, c.op, c.reduce_op, c.root, ConstBuffer::of(data.in),
              Buffer::of(data.out));
    std::string& mine = wrong[static_cast<std::size_t>(rank.group.rank())];
    mine = first_difference<T>(data.out, data.out_after);
    const std::string of_input = first_difference<T>(data.in, input);
    if (mine.empty() && !of_input.empty()) mine = "its input: " + of_input;
  });
  for (std::size_t rank = 0; rank < wrong.size(); ++rank) {
    if (wrong[rank].empty()) continue;
    return fmt::format("rank {} of {}: {}", rank, c.world_size, wrong[rank]);
  }
  return "";
}

// The operations that the backend has, as cases name them.
std::vector<Op> operations_of(const Capabilities& able) {
  constexpr Op kOps[] = {Op::kBroadcast, Op::kReduce,  Op::kAllGather, Op::kReduceScatter,
                         Op::kGather,    Op::kScatter, Op::kAllToAll,  Op::kSend};
  std::vector<Op> result;
  for (const Op op : kOps) {
    if (able.supports(op)) result.push_back(op);
  }
  return result;
}

}  // namespace

std::string check_collective_exact(const PropertyWorld& world, const CollectiveCase& c) {
  if (c.type == DType::kCustom) return "caller-defined elements have no crafted inputs";
  if (c.op == Op::kSend && c.world_size == 1) return "";  // no rank sends to itself
  return visit_dtype(c.type, [&]<class T>(T) { return check_as<T>(world, c); });
}

PropertyResult collectives_exact(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime) {
  const Capabilities& able = world.backend.capabilities();
  const std::vector<Op> ops = operations_of(able);
  // Choices by number, so that they shrink to the first.
  const auto number_below = [](std::size_t limit) {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, limit));
  };
  const auto count = rc::gen::oneOf(rc::gen::inRange(0, 17), rc::gen::inRange(0, 1026));
  const auto parts =
      rc::gen::tuple(world_sizes(world), number_below(ops.size()), number_below(able.dtypes.size()),
                     number_below(able.reduce_ops.size()), number_below(1 << 20), count,
                     rc::gen::arbitrary<std::uint32_t>());
  const auto cases = rc::gen::map(parts, [&able, ops](const auto& drawn) {
    const int world_size = std::get<0>(drawn);
    return CollectiveCase{world_size,
                          ops[std::get<1>(drawn)],
                          able.dtypes[std::get<2>(drawn)],
                          able.reduce_ops[std::get<3>(drawn)],
                          static_cast<int>(std::get<4>(drawn)) % world_size,
                          std::get<5>(drawn),
                          std::get<6>(drawn)};
  });
  const Property<CollectiveCase> property{
      "collectives-exact", cases, show_collective,
      [&world](const CollectiveCase& c) { return classes_of_collective(c, world); },
      [&world](const CollectiveCase& c) { return check_collective_exact(world, c); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
