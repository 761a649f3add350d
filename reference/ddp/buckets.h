// Which gradients travel together: the assignment of tensors to buckets.
//
// Source: PyTorch 1.13.1 compute_bucket_assignment_by_size, as described in SEMANTICS section 3.1.
// Pure functions; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/api/element.h"

namespace ddproof {

// PyTorch's sizes: small first, so that communication starts early.
inline constexpr std::int64_t kFirstBucketBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kDefaultBucketBytes = std::int64_t{25} << 20;

struct BucketTensor {
  std::int64_t bytes = 0;
  ElementType type;
  bool sparse = false;  // gets a bucket of its own
};

struct BucketAssignment {
  std::vector<std::vector<std::size_t>> buckets;  // indices into the tensors, in reduction order
  std::vector<std::int64_t> limits;               // the limit each bucket was filled under
};

// Walks the tensors in `order` (empty: as they come) with one open bucket and one limit per element
// type. A tensor is added first, and the bucket closed when it has reached the limit: a bucket may
// pass its limit by one tensor. After each close the type moves on to its next limit and stays on
// the last. Without an order, the buckets are sorted by their smallest index.
//
// Ensures: every tensor is in exactly one bucket; no bucket is empty.
// Throws:  ConfigError when tensors or limits are empty, or `order` is not a permutation.
BucketAssignment assign_buckets(std::span<const BucketTensor> tensors,
                                std::span<const std::int64_t> limits,
                                std::span<const std::size_t> order = {});

}  // namespace ddproof
