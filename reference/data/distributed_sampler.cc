#include "reference/data/distributed_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "reference/data/randperm.h"

namespace ddproof {
namespace {

void validate(const SamplerOptions& options) {
  if (options.length < 0 || options.length > DistributedSampler::kMaxLength) {
    throw ConfigError(fmt::format("sampler length {}: expected 0 to {}; pass the number of samples",
                                  options.length, DistributedSampler::kMaxLength));
  }
  if (options.replicas < 1) {
    throw ConfigError(fmt::format("sampler replicas {}: expected at least 1; pass the world size",
                                  options.replicas));
  }
  if (options.rank < 0 || options.rank >= options.replicas) {
    throw ConfigError(fmt::format("sampler rank {}: expected 0 to {} ({} replicas)", options.rank,
                                  options.replicas - 1, options.replicas));
  }
}

}  // namespace

std::vector<std::int64_t> IndexList::to_vector() const {
  return std::visit([](const auto& v) { return std::vector<std::int64_t>(v.begin(), v.end()); },
                    indices_);
}

DistributedSampler::DistributedSampler(const SamplerOptions& options) : options_(options) {
  validate(options);
}

void DistributedSampler::set_epoch(std::int64_t epoch) {
  if (epoch < 0) throw ConfigError(fmt::format("sampler epoch {}: expected at least 0", epoch));
  epoch_ = epoch;
  begun_ = false;
}

std::int64_t DistributedSampler::remaining(std::int64_t position) const {
  DDPROOF_CHECK(position >= 0);
  if (position >= options_.length) return 0;
  return share_of(options_.length - position, options_.replicas, options_.rank, options_.tail);
}

std::int64_t DistributedSampler::total_size() const {
  return options_.tail == Tail::kKeep ? options_.length : size() * options_.replicas;
}

// Entry k of this rank is position p = position + rank + k*R. Padding starts over at the front as
// often as needed, so the entry is order[p mod N]; without padding p never reaches N.
template <class Index>
std::vector<Index> DistributedSampler::draw(std::int64_t position) const {
  const std::int64_t count = remaining(position);
  std::vector<Index> order;
  if (options_.shuffle) {
    const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(epoch_);
    order = randperm<Index>(options_.length, seed);
    if (options_.replicas == 1 && position == 0) return order;
  }
  std::vector<Index> drawn(static_cast<std::size_t>(count));
  std::int64_t at = position + options_.rank;
  for (Index& index : drawn) {
    const std::int64_t wrapped = at < options_.length ? at : at % options_.length;
    index =
        options_.shuffle ? order[static_cast<std::size_t>(wrapped)] : static_cast<Index>(wrapped);
    at += options_.replicas;
  }
  return drawn;
}

void DistributedSampler::warn_of_a_repeat() const {
  if (!options_.shuffle || !options_.on_warning) return;
  options_.on_warning(
      fmt::format("sampler: epoch {} is begun again without set_epoch(), so its order repeats; "
                  "call set_epoch() before each epoch",
                  epoch_));
}

IndexList DistributedSampler::indices(std::int64_t position) {
  const std::int64_t length = options_.length;
  if (position < 0 || (position > 0 && position >= length)) {
    throw ConfigError(
        fmt::format("sampler position {}: expected 0 to {} in a data set of {} samples; the epoch "
                    "after its last sample begins at position 0",
                    position, length > 0 ? length - 1 : 0, length));
  }
  if (begun_ && position == 0) warn_of_a_repeat();
  begun_ = true;
  try {
    if (length - 1 <= std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
      return IndexList(draw<std::uint32_t>(position));
    }
    return IndexList(draw<std::int64_t>(position));
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format(
        "sampler length {}: not enough memory for its order; lower the length", length));
  }
}

}  // namespace ddproof
