#include "properties/stream_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace ddproof {
namespace {

using Numbers = std::vector<std::int64_t>;

// Sample p holds p, and p mod 7 as its label.
class CountingStream final : public SampleStream {
 public:
  CountingStream(std::int64_t size, bool is_length_known)
      : size_(size), is_length_known_(is_length_known) {}

  const Shape& sample_shape() const override { return shape_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::optional<std::int64_t> length() const override {
    return is_length_known_ ? std::optional(size_) : std::nullopt;
  }
  std::optional<std::int64_t> next(std::span<float> values,
                                   std::span<std::int64_t> labels) override {
    if (next_ == size_) return std::nullopt;
    values[0] = static_cast<float>(next_);
    labels[0] = next_ % 7;
    return next_++;
  }

 private:
  const std::int64_t size_;
  const bool is_length_known_;
  const Shape shape_{1};
  const Shape label_shape_;
  std::int64_t next_ = 0;
};

std::string show_stream(const StreamCase& c) {
  return fmt::format("length={} known={} replicas={} workers={} tail={}", c.length,
                     c.is_length_known, c.shard.replicas, c.shard.workers, name_of(c.shard.tail));
}

std::vector<std::string> classes_of_stream(const StreamCase& c) {
  std::vector<std::string> classes{c.is_length_known ? "known length" : "unknown length"};
  if (c.length < c.shard.replicas) classes.push_back("more ranks than samples");
  if (c.shard.workers > 1) classes.push_back("many workers");
  if (c.length % c.shard.replicas != 0) {
    classes.push_back(fmt::format("tail to {}", name_of(c.shard.tail)));
  }
  return classes;
}

rc::Gen<StreamCase> stream_cases() {
  const auto length = rc::gen::oneOf(rc::gen::inRange(0, 17), rc::gen::inRange(0, 101));
  const auto parts = rc::gen::tuple(length, rc::gen::arbitrary<bool>(), rc::gen::inRange(1, 17),
                                    rc::gen::inRange(1, 5),
                                    rc::gen::element(Tail::kPad, Tail::kDrop, Tail::kKeep));
  return rc::gen::map(parts, [](const auto& drawn) {
    StreamCase c;
    c.length = std::get<0>(drawn);
    c.is_length_known = std::get<1>(drawn);
    c.shard.replicas = std::get<2>(drawn);
    c.shard.workers = std::get<3>(drawn);
    c.shard.tail = std::get<4>(drawn);
    return c;
  });
}

// A rank's samples: its workers in turn.
Numbers in_turn(const std::vector<Numbers>& workers) {
  Numbers numbers;
  const std::size_t longest = std::ranges::max(workers, {}, &Numbers::size).size();
  for (std::size_t i = 0; i < longest; ++i) {
    for (const Numbers& worker : workers) {
      if (i < worker.size()) numbers.push_back(worker[i]);
    }
  }
  return numbers;
}

std::string check_union(const StreamCase& c, const std::vector<Numbers>& ranks) {
  Numbers copies(static_cast<std::size_t>(c.length));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (c.shard.tail != Tail::kKeep && ranks[rank].size() != ranks[0].size()) {
      return fmt::format("union: rank {} gets {} samples, rank 0 {}", rank, ranks[rank].size(),
                         ranks[0].size());
    }
    for (const std::int64_t number : ranks[rank]) ++copies.at(static_cast<std::size_t>(number));
  }
  const std::int64_t left_out = std::ranges::count(copies, 0);
  if (left_out > (c.shard.tail == Tail::kDrop ? c.shard.replicas - 1 : 0)) {
    return fmt::format("union: {} samples never come out", left_out);
  }
  if (c.shard.tail != Tail::kPad && std::ranges::any_of(copies, [](auto n) { return n > 1; })) {
    return "union: a sample comes out twice";
  }
  return "";
}

}  // namespace

std::vector<std::int64_t> draw_reference_stream_shard(const StreamCase& drawn, int rank,
                                                      int worker) {
  CountingStream source(drawn.length, drawn.is_length_known);
  ShardOptions options = drawn.shard;
  options.rank = rank;
  options.worker = worker;
  ShardedStream shard(source, options);
  const std::optional<std::int64_t> told = shard.length();
  Numbers numbers;
  std::vector<float> values(1);
  std::vector<std::int64_t> labels(1);
  while (const std::optional<std::int64_t> number = shard.next(values, labels)) {
    if (values[0] != static_cast<float>(*number) || labels[0] != *number % 7) {
      throw std::logic_error(fmt::format("number {} comes with value {}", *number, values[0]));
    }
    numbers.push_back(*number);
  }
  if (shard.next(values, labels)) throw std::logic_error("the shard goes on after its end");
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (told.has_value() != drawn.is_length_known || told.value_or(count) != count) {
    throw std::logic_error(
        fmt::format("told length: {} of {} samples", told.value_or(-1), numbers.size()));
  }
  return numbers;
}

std::string check_stream_partition(const StreamCase& drawn, const DrawStreamShard& draw) {
  std::vector<Numbers> ranks;
  for (int rank = 0; rank < drawn.shard.replicas; ++rank) {
    std::vector<Numbers> workers;
    for (int worker = 0; worker < drawn.shard.workers; ++worker) {
      workers.push_back(draw(drawn, rank, worker));
    }
    ranks.push_back(in_turn(workers));
  }
  if (std::string wrong = check_union(drawn, ranks); !wrong.empty()) return wrong;
  for (int rank = 0; rank < drawn.shard.replicas; ++rank) {
    DistributedSampler sampler({.length = drawn.length,
                                .replicas = drawn.shard.replicas,
                                .rank = rank,
                                .shuffle = false,
                                .tail = drawn.shard.tail});
    const Numbers& numbers = ranks[static_cast<std::size_t>(rank)];
    if (const Numbers dealt = sampler.indices().to_vector(); numbers != dealt) {
      return fmt::format("one order: rank {} gets [{}], a sampler deals [{}]", rank,
                         fmt::join(numbers, ","), fmt::join(dealt, ","));
    }
  }
  return "";
}

PropertyResult stream_partition(const PropertyOptions& options, Runtime& runtime,
                                const DrawStreamShard& draw) {
  const Property<StreamCase> property{
      "stream-partition", stream_cases(), show_stream, classes_of_stream,
      [&draw](const StreamCase& c) { return check_stream_partition(c, draw); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
