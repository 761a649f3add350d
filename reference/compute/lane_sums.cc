#include "reference/compute/lane_sums.h"

#include "reference/compute/isa.h"

namespace ddproof {
namespace {

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void sums_avx2(LaneSum kind, const T* x, T* sums, std::int64_t count) {
  internal::lane_loops(kind, x, sums, count);
}
#endif

template <class T>
void sums_of(LaneSum kind, const T* x, T* sums, std::int64_t count) {
#if defined(__x86_64__)
  if (best_isa() != Isa::kPortable) return sums_avx2(kind, x, sums, count);
#endif
  internal::lane_loops(kind, x, sums, count);
}

}  // namespace

template <>
void lane_sums(LaneSum kind, const float* x, float* sums, std::int64_t count) {
  sums_of(kind, x, sums, count);
}

template <>
void lane_sums(LaneSum kind, const double* x, double* sums, std::int64_t count) {
  sums_of(kind, x, sums, count);
}

}  // namespace ddproof
