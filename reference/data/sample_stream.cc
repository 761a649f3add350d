#include "reference/data/sample_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

void check_place(const char* many, int count, const char* one, int number) {
  if (count < 1) {
    throw ConfigError(fmt::format("shard {} {}: expected at least 1", many, count));
  }
  if (number < 0 || number >= count) {
    throw ConfigError(
        fmt::format("shard {} {}: expected 0 to {} ({} {})", one, number, count - 1, count, many));
  }
}

}  // namespace

ListedSamples::ListedSamples(const Dataset& dataset, IndexList indices)
    : dataset_(dataset), indices_(std::move(indices)) {
  for (std::int64_t i = 0; i < indices_.size(); ++i) {
    if (indices_[i] >= dataset_.size()) {
      throw ConfigError(fmt::format(
          "loader: sample {} of a data set of {}; give the sampler the data set's length",
          indices_[i], dataset_.size()));
    }
  }
}

std::optional<std::int64_t> ListedSamples::next(std::span<float> values,
                                                std::span<std::int64_t> labels) {
  const std::optional<std::int64_t> index = read(next_, values, labels);
  if (index) ++next_;
  return index;
}

std::optional<std::int64_t> ListedSamples::read(std::int64_t place, std::span<float> values,
                                                std::span<std::int64_t> labels) const {
  if (place >= indices_.size()) return std::nullopt;
  const std::int64_t index = indices_[place];
  dataset_.read(index, values, labels);
  return index;
}

ShardedStream::ShardedStream(SampleStream& source, const ShardOptions& options)
    : source_(source), options_(options) {
  check_place("replicas", options.replicas, "rank", options.rank);
  check_place("workers", options.workers, "worker", options.worker);
}

std::optional<std::int64_t> ShardedStream::length() const {
  const std::optional<std::int64_t> whole = source_.length();
  if (!whole) return std::nullopt;
  const std::int64_t share = share_of(*whole, options_.replicas, options_.rank, options_.tail);
  return share_of(share, options_.workers, options_.worker, Tail::kKeep);
}

bool ShardedStream::is_mine(std::int64_t place) const {
  return place % options_.replicas == options_.rank &&
         place / options_.replicas % options_.workers == options_.worker;
}

// The source's next sample into read_. False at the end.
bool ShardedStream::read() {
  read_.values.resize(static_cast<std::size_t>(element_count(sample_shape())));
  read_.labels.resize(static_cast<std::size_t>(element_count(label_shape())));
  const std::optional<std::int64_t> number = source_.next(read_.values, read_.labels);
  ended_ = !number.has_value();
  if (!ended_) {
    read_.number = *number;
    ++position_;
  }
  const std::optional<std::int64_t> told = source_.length();
  if (told && (ended_ ? position_ < *told : position_ > *told)) {
    throw DataError(
        fmt::format("stream: {} after {} samples, its length is {}; give it the length "
                    "that it has, or none",
                    ended_ ? "ends" : "goes on", ended_ ? position_ : *told, *told));
  }
  return !ended_;
}

std::int64_t ShardedStream::give(const Sample& sample, std::span<float> values,
                                 std::span<std::int64_t> labels) {
  DDPROOF_CHECK(values.size() == sample.values.size() && labels.size() == sample.labels.size());
  std::ranges::copy(sample.values, values.begin());
  std::ranges::copy(sample.labels, labels.begin());
  return sample.number;
}

std::optional<std::int64_t> ShardedStream::next(std::span<float> values,
                                                std::span<std::int64_t> labels) {
  bool is_held = false;
  while (!ended_) {
    if (!read()) return fill_up(values, labels);
    const std::int64_t place = position_ - 1;
    if (options_.tail == Tail::kPad && place < options_.rank) front_.push_back(read_);
    if (is_mine(place)) {
      std::swap(mine_, read_);
      is_held = true;
    }
    const bool is_round_full = place % options_.replicas == options_.replicas - 1;
    if (is_held && (is_round_full || options_.tail != Tail::kDrop)) {
      return give(mine_, values, labels);
    }
  }
  return std::nullopt;
}

// The last round goes on at the front: its place p takes sample p mod N. That is below this rank:
// with N >= R it is p - N < rank, with N < R it is rank mod N.
std::optional<std::int64_t> ShardedStream::fill_up(std::span<float> values,
                                                   std::span<std::int64_t> labels) {
  const std::int64_t left = position_ % options_.replicas;
  const std::int64_t place = position_ - left + options_.rank;
  if (options_.tail != Tail::kPad || left == 0 || options_.rank < left || !is_mine(place)) {
    return std::nullopt;
  }
  return give(front_[static_cast<std::size_t>(place % position_)], values, labels);
}

}  // namespace ddproof
