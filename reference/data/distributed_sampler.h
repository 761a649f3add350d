// Which samples each rank draws in an epoch: torch.utils.data.DistributedSampler, bit for bit.
//
// One epoch: the order is 0..N-1, or with shuffle randperm(N) seeded with seed+epoch. It is padded
// to a multiple of the replicas by starting over at its front, or its tail is cut (PyTorch's
// drop_last); rank r takes the positions r, r+R, r+2R, ... So every rank draws the same number of
// samples. With Tail::kKeep, which PyTorch lacks, the order is dealt as it is: each sample once.
//
// Resuming counts positions of that order, over all ranks together: after k steps of b samples on
// each of R ranks the position is k*b*R. What is left may be split over another number of replicas,
// as often as a run restarts: each sample of the order is drawn once, and only the last round is
// padded (from the front of the whole order, at most R-1 copies), cut (at most R-1 samples) or
// kept. That is torch's ElasticDistributedSampler, but for its faults: seed and tail count here as
// always. The sampler holds no "just resumed" state: a position is an argument, never remembered.
//
// Ranks must agree on all options and on the epoch, or they silently draw wrong samples:
// require_same_sampler() of reference/train compares them. Threads: one task at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reference/data/tail.h"

namespace ddproof {

// Sample indices: a list of its own, or one rank's part of an order that others share.
//
// Immutable; a copy costs nothing. Threads: safe from any.
class IndexList {
 public:
  // 4 bytes an index where the length allows, 8 otherwise.
  using Narrow = std::vector<std::uint32_t>;
  using Wide = std::vector<std::int64_t>;
  using Order = std::variant<Narrow, Wide>;

  IndexList() = default;
  explicit IndexList(Narrow indices);
  explicit IndexList(Wide indices);
  // Entry k is place first + k*stride of the order, which starts over at its end. No order: the
  // numbers 0 to length-1 as they are. Requires: the order has `length` entries; count is 0 when it
  // has none.
  IndexList(std::shared_ptr<const Order> order, std::int64_t length, std::int64_t first,
            std::int64_t stride, std::int64_t count);

  std::int64_t size() const { return count_; }
  // Requires: 0 <= i < size().
  std::int64_t operator[](std::int64_t i) const {
    std::int64_t place = first_ + i * stride_;
    if (place >= length_) place %= length_;
    if (!order_) return place;
    const auto at = static_cast<std::size_t>(place);
    if (const Narrow* narrow = std::get_if<Narrow>(order_.get())) return (*narrow)[at];
    return std::get<Wide>(*order_)[at];
  }
  std::vector<std::int64_t> to_vector() const;
  // The same entries, sharing no order with others.
  IndexList compacted() const;

 private:
  std::shared_ptr<const Order> order_;
  std::int64_t length_ = 0;
  std::int64_t first_ = 0;
  std::int64_t stride_ = 1;
  std::int64_t count_ = 0;
};

struct SamplerOptions {
  std::int64_t length = 0;  // samples in the data set
  int replicas = 1;
  int rank = 0;
  bool shuffle = true;
  // PyTorch's range: -1 is 2^64-1. Only the low 32 bits of seed+epoch count.
  std::uint64_t seed = 0;
  Tail tail = Tail::kPad;
  // Hears when an epoch's shuffled order is drawn from its front a second time: set_epoch() was
  // forgotten, and every epoch trains on the same order. None: nobody is told.
  std::function<void(const std::string&)> on_warning = {};
};

class DistributedSampler {
 public:
  // More samples than any data set has, and few enough that no size below can overflow.
  static constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;

  // Throws ConfigError when length is not in 0..kMaxLength, replicas < 1, or rank is not in
  // 0..replicas-1; each with a text of its own.
  explicit DistributedSampler(const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }
  std::int64_t epoch() const { return epoch_; }
  // Throws ConfigError when epoch < 0. The same epoch again is fine: its order is meant to repeat.
  void set_epoch(std::int64_t epoch);

  // Samples that this rank draws in a whole epoch, copies included: PyTorch's len().
  std::int64_t size() const { return remaining(0); }
  // size() of all ranks together; a position never passes it.
  std::int64_t total_size() const;
  // Samples that this rank still draws from `position` on; 0 at the end of the epoch.
  // Requires: position >= 0.
  std::int64_t remaining(std::int64_t position) const;

  // This rank's samples of the epoch, from `position` on. The list has remaining(position) entries.
  // With shuffle it takes one index a sample of the data set (IndexList::Narrow or Wide) while it
  // runs, and keeps this rank's; without, nothing.
  // Throws ConfigError when position < 0, or when nothing is left (position >= length > 0): then
  // the next epoch begins, at position 0. Throws ResourceError when the memory is not there.
  IndexList indices(std::int64_t position = 0);

  // The lists of all ranks, by rank, where one process holds them: they share one order, so they
  // take one shuffle and one index a sample, however many ranks there are. Errors: those of
  // indices().
  std::vector<IndexList> indices_of_all_ranks(std::int64_t position = 0);

 private:
  std::shared_ptr<const IndexList::Order> begin(std::int64_t position);
  IndexList deal(std::shared_ptr<const IndexList::Order> order, std::int64_t position,
                 int rank) const;
  void warn_of_a_repeat() const;

  SamplerOptions options_;
  std::int64_t epoch_ = 0;
  bool begun_ = false;  // an order was drawn since the last set_epoch()
};

}  // namespace ddproof
