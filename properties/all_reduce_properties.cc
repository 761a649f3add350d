#include "properties/all_reduce_properties.h"

#include <fmt/format.h>

#include "properties/collective_properties.h"

namespace ddproof {
namespace {

std::string show_all_reduce(const AllReduceCase& c) {
  return fmt::format("world_size={} type={} op={} count={} seed={}", c.world_size,
                     ElementType(c.type).name(), to_string(c.op), c.count, c.seed);
}

std::vector<std::string> classes_of_all_reduce(const AllReduceCase& c, const PropertyWorld& world) {
  std::vector<std::string> classes = {std::string(to_string(c.op)),
                                      std::string(ElementType(c.type).name())};
  if (c.count == 0) classes.push_back("empty");
  if (c.count > 0 && c.count < c.world_size) classes.push_back("fewer elements than ranks");
  if (c.count % c.world_size != 0) classes.push_back("uneven chunks");
  if (c.world_size == world.world_size_max) classes.push_back("full world");
  return classes;
}

}  // namespace

std::string check_all_reduce_exact(const PropertyWorld& world, const AllReduceCase& c) {
  return check_collective_exact(world, {.world_size = c.world_size,
                                        .op = Op::kAllReduce,
                                        .type = c.type,
                                        .reduce_op = c.op,
                                        .count = c.count,
                                        .seed = c.seed});
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
      "all-reduce-exact", cases, show_all_reduce,
      [&world](const AllReduceCase& c) { return classes_of_all_reduce(c, world); },
      [&world](const AllReduceCase& c) { return check_all_reduce_exact(world, c); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
