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
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reference/data/tail.h"

namespace ddproof {

// Sample indices: 4 bytes each where the length allows, 8 otherwise.
class IndexList {
 public:
  using Narrow = std::vector<std::uint32_t>;
  using Wide = std::vector<std::int64_t>;

  IndexList() = default;
  explicit IndexList(Narrow indices) : indices_(std::move(indices)) {}
  explicit IndexList(Wide indices) : indices_(std::move(indices)) {}

  std::int64_t size() const {
    return std::visit([](const auto& v) { return static_cast<std::int64_t>(v.size()); }, indices_);
  }
  // Requires: 0 <= i < size().
  std::int64_t operator[](std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    if (const Narrow* narrow = std::get_if<Narrow>(&indices_)) return (*narrow)[at];
    return std::get<Wide>(indices_)[at];
  }
  std::vector<std::int64_t> to_vector() const;

 private:
  std::variant<Narrow, Wide> indices_;
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
  // Takes at most 8 bytes a sample of the data set while it runs.
  // Throws ConfigError when position < 0, or when nothing is left (position >= length > 0): then
  // the next epoch begins, at position 0. Throws ResourceError when the memory is not there.
  IndexList indices(std::int64_t position = 0);

 private:
  template <class Index>
  std::vector<Index> draw(std::int64_t position) const;
  void warn_of_a_repeat() const;

  SamplerOptions options_;
  std::int64_t epoch_ = 0;
  bool begun_ = false;  // an order was drawn since the last set_epoch()
};

}  // namespace ddproof
