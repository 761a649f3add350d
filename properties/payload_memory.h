// Memory for what the ranks of a benchmark reduce, the same for both sides: in huge pages where the
// system gives them. A page fault costs up to 30 us on a virtual machine, so that 1 GiB in small
// pages would take longer than its all-reduce.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>

struct FreePayload {
  void operator()(float* values) const { std::free(values); }
};
using PayloadMemory = std::unique_ptr<float[], FreePayload>;

// `count` ones.
inline PayloadMemory make_payload(std::size_t count) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = (count * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  PayloadMemory values(static_cast<float*>(aligned_alloc(kHugePage, bytes)));
  madvise(values.get(), bytes, MADV_HUGEPAGE);  // a wish
  std::fill_n(values.get(), count, 1.0F);
  return values;
}
