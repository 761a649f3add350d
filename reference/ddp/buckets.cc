#include "reference/ddp/buckets.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "backends/api/error.h"

namespace ddproof {
namespace {

struct OpenBucket {
  ElementType type;
  std::vector<std::size_t> tensors;
  std::int64_t bytes = 0;
  std::size_t limit_index = 0;
};

// The open bucket of a type, in order of first appearance.
OpenBucket& open_bucket(std::vector<OpenBucket>& open, ElementType type) {
  for (OpenBucket& bucket : open) {
    if (bucket.type == type) return bucket;
  }
  return open.emplace_back(OpenBucket{.type = type});
}

void sort_by_smallest_index(BucketAssignment& assignment) {
  std::vector<std::size_t> rank(assignment.buckets.size());
  std::iota(rank.begin(), rank.end(), std::size_t{0});
  std::ranges::stable_sort(
      rank, {}, [&](std::size_t i) { return *std::ranges::min_element(assignment.buckets[i]); });
  BucketAssignment sorted;
  for (std::size_t i : rank) {
    sorted.buckets.push_back(std::move(assignment.buckets[i]));
    sorted.limits.push_back(assignment.limits[i]);
  }
  assignment = std::move(sorted);
}

std::vector<std::size_t> checked_order(std::size_t count, std::span<const std::size_t> order) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  if (order.empty()) return result;
  if (!std::is_permutation(order.begin(), order.end(), result.begin(), result.end())) {
    throw ConfigError("bucket assignment: the order is not a permutation of " +
                      std::to_string(count) + " tensors");
  }
  return {order.begin(), order.end()};
}

}  // namespace

BucketAssignment assign_buckets(std::span<const BucketTensor> tensors,
                                std::span<const std::int64_t> limits,
                                std::span<const std::size_t> order) {
  if (tensors.empty()) throw ConfigError("bucket assignment: there is no tensor to assign");
  if (limits.empty()) throw ConfigError("bucket assignment: there is no size limit");
  BucketAssignment result;
  const auto close = [&result](std::vector<std::size_t> bucket, std::int64_t limit) {
    result.buckets.push_back(std::move(bucket));
    result.limits.push_back(limit);
  };
  std::vector<OpenBucket> open;
  for (std::size_t index : checked_order(tensors.size(), order)) {
    const BucketTensor& tensor = tensors[index];
    if (tensor.sparse) {
      close({index}, 0);
      continue;
    }
    OpenBucket& bucket = open_bucket(open, tensor.type);
    bucket.tensors.push_back(index);
    bucket.bytes += tensor.bytes;
    if (bucket.bytes < limits[bucket.limit_index]) continue;
    close(std::exchange(bucket.tensors, {}), limits[bucket.limit_index]);
    bucket.bytes = 0;
    bucket.limit_index = std::min(bucket.limit_index + 1, limits.size() - 1);
  }
  for (OpenBucket& bucket : open) {
    if (!bucket.tensors.empty()) close(std::move(bucket.tensors), limits[bucket.limit_index]);
  }
  if (order.empty()) sort_by_smallest_index(result);
  return result;
}

}  // namespace ddproof
