#include "properties/all_reduce_properties.h"

#include <fmt/format.h>

#include <cstring>

#include "backends/api/visit_dtype.h"
#include "reference/oracle/exact_inputs.h"

namespace ddproof {
namespace {

std::string show(const AllReduceCase& c) {
  return fmt::format("world_size={} type={} op={} count={} seed={}", c.world_size,
                     ElementType(c.type).name(), to_string(c.op), c.count, c.seed);
}

std::vector<std::string> classes_of(const AllReduceCase& c, const PropertyWorld& world) {
  std::vector<std::string> classes = {std::string(to_string(c.op)),
                                      std::string(ElementType(c.type).name())};
  if (c.count == 0) classes.push_back("empty");
  if (c.count > 0 && c.count < c.world_size) classes.push_back("fewer elements than ranks");
  if (c.count % c.world_size != 0) classes.push_back("uneven chunks");
  if (c.world_size == world.world_size_max) classes.push_back("full world");
  return classes;
}

template <class T>
T input_of(const ExactInputs<T>& inputs, ReduceOp op, std::int64_t index, int rank) {
  return op == ReduceOp::kProduct ? inputs.factor(index, rank) : inputs.addend(index, rank);
}

template <class T>
T expected_of(const ExactInputs<T>& inputs, ReduceOp op, std::int64_t index) {
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
std::string number(T value) {
  if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (sizeof(T) == 2)
    return fmt::format("{}", static_cast<float>(value));
  else
    return fmt::format("{}", value);
}

template <class T>
std::string check_as(const PropertyWorld& world, const AllReduceCase& c) {
  const ExactInputs<T> inputs(c.seed, c.world_size);
  const auto count = static_cast<std::size_t>(c.count);
  std::vector<std::vector<T>> results(static_cast<std::size_t>(c.world_size));
  run_ranks(world, c.world_size, c.seed, Checked::kNo, [&](RankContext& rank) {
    std::vector<T> data(count);
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = input_of(inputs, c.op, static_cast<std::int64_t>(i), rank.group.rank());
    }
    rank.group.all_reduce(Buffer::of(std::span(data)), c.op)->wait();
    results[static_cast<std::size_t>(rank.group.rank())] = std::move(data);
  });
  for (std::size_t i = 0; i < count; ++i) {
    const T expected = expected_of(inputs, c.op, static_cast<std::int64_t>(i));
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      const T& seen = results[rank][i];
      if (std::memcmp(&seen, &expected, sizeof(T)) == 0) continue;
      return fmt::format("rank {} of {}: element {} of {} is {}, expected {}", rank, c.world_size,
                         i, count, number(seen), number(expected));
    }
  }
  return "";
}

}  // namespace

std::string check_all_reduce_exact(const PropertyWorld& world, const AllReduceCase& c) {
  if (c.type == DType::kCustom) return "caller-defined elements have no crafted inputs";
  return visit_dtype(c.type, [&]<class T>(T) { return check_as<T>(world, c); });
}

PropertyResult all_reduce_exact(const PropertyWorld& world, const PropertyOptions& options,
                                Runtime& runtime) {
  const Capabilities& able = world.backend.capabilities();
  const auto count = rc::gen::oneOf(rc::gen::inRange(0, 17), rc::gen::inRange(0, 4098));
  // Choices by number, so that they shrink to the first.
  const auto index_into = [](const auto& list) {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, list.size()));
  };
  const auto parts =
      rc::gen::tuple(world_sizes(world), index_into(able.dtypes), index_into(able.reduce_ops),
                     count, rc::gen::arbitrary<std::uint32_t>());
  const auto cases = rc::gen::map(parts, [&able](const auto& drawn) {
    return AllReduceCase{std::get<0>(drawn), able.dtypes[std::get<1>(drawn)],
                         able.reduce_ops[std::get<2>(drawn)], std::get<3>(drawn),
                         std::get<4>(drawn)};
  });
  const Property<AllReduceCase> property{
      "all-reduce-exact", cases, show,
      [&world](const AllReduceCase& c) { return classes_of(c, world); },
      [&world](const AllReduceCase& c) { return check_all_reduce_exact(world, c); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
