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

template <class Index>
IndexList copy_of(const IndexList& list) {
  std::vector<Index> indices(static_cast<std::size_t>(list.size()));
  std::int64_t i = 0;
  for (Index& index : indices) index = static_cast<Index>(list[i++]);
  return IndexList(std::move(indices));
}

std::shared_ptr<const IndexList::Order> draw_order(std::int64_t length, std::uint64_t seed) {
  if (length - 1 <= std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
    return std::make_shared<const IndexList::Order>(randperm<std::uint32_t>(length, seed));
  }
  return std::make_shared<const IndexList::Order>(randperm<std::int64_t>(length, seed));
}

[[noreturn]] void refuse_for_want_of_memory(std::int64_t length) {
  throw ResourceError(
      fmt::format("sampler length {}: not enough memory for its order; lower the length", length));
}

}  // namespace

IndexList::IndexList(Narrow indices)
    : length_(static_cast<std::int64_t>(indices.size())), count_(length_) {
  order_ = std::make_shared<const Order>(std::move(indices));
}

IndexList::IndexList(Wide indices)
    : length_(static_cast<std::int64_t>(indices.size())), count_(length_) {
  order_ = std::make_shared<const Order>(std::move(indices));
}

IndexList::IndexList(std::shared_ptr<const Order> order, std::int64_t length, std::int64_t first,
                     std::int64_t stride, std::int64_t count)
    : order_(std::move(order)), length_(length), first_(first), stride_(stride), count_(count) {
  DDPROOF_CHECK(count == 0 || length > 0);
}

std::vector<std::int64_t> IndexList::to_vector() const {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count_));
  for (std::int64_t i = 0; i < count_; ++i) indices[static_cast<std::size_t>(i)] = (*this)[i];
  return indices;
}

IndexList IndexList::compacted() const {
  if (!order_ || count_ == length_) return *this;
  return std::holds_alternative<Narrow>(*order_) ? copy_of<std::uint32_t>(*this)
                                                 : copy_of<std::int64_t>(*this);
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

// Entry k of the rank is position p = position + rank + k*R. Padding starts over at the front as
// often as needed, so the entry is order[p mod N]; without padding p never reaches N.
IndexList DistributedSampler::deal(std::shared_ptr<const IndexList::Order> order,
                                   std::int64_t position, int rank) const {
  const std::int64_t share =
      share_of(options_.length - position, options_.replicas, rank, options_.tail);
  return {std::move(order), options_.length, position + rank, options_.replicas, share};
}

void DistributedSampler::warn_of_a_repeat() const {
  if (!options_.shuffle || !options_.on_warning) return;
  options_.on_warning(
      fmt::format("sampler: epoch {} is begun again without set_epoch(), so its order repeats; "
                  "call set_epoch() before each epoch",
                  epoch_));
}

// The epoch's order; none without shuffle.
std::shared_ptr<const IndexList::Order> DistributedSampler::begin(std::int64_t position) {
  const std::int64_t length = options_.length;
  if (position < 0 || (position > 0 && position >= length)) {
    throw ConfigError(
        fmt::format("sampler position {}: expected 0 to {} in a data set of {} samples; the epoch "
                    "after its last sample begins at position 0",
                    position, length > 0 ? length - 1 : 0, length));
  }
  if (begun_ && position == 0) warn_of_a_repeat();
  begun_ = true;
  if (!options_.shuffle) return nullptr;
  return draw_order(length, options_.seed + static_cast<std::uint64_t>(epoch_));
}

IndexList DistributedSampler::indices(std::int64_t position) try {
  return deal(begin(position), position, options_.rank).compacted();
} catch (const std::bad_alloc&) {
  refuse_for_want_of_memory(options_.length);
}

std::vector<IndexList> DistributedSampler::indices_of_all_ranks(std::int64_t position) try {
  const std::shared_ptr<const IndexList::Order> order = begin(position);
  std::vector<IndexList> lists;
  lists.reserve(static_cast<std::size_t>(options_.replicas));
  for (int rank = 0; rank < options_.replicas; ++rank) {
    lists.push_back(deal(order, position, rank));
  }
  return lists;
} catch (const std::bad_alloc&) {
  refuse_for_want_of_memory(options_.length);
}

}  // namespace ddproof
