#include "reference/compute/adam_kernel.h"

#include "reference/compute/isa.h"

namespace ddproof {
namespace {

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void update_avx2(const AdamRule& rule, const AdamFactors<T>& factors,
                                             T* w, const T* gradient, const AdamState<T>& state,
                                             std::int64_t count) {
  internal::adam_loops(rule, factors, w, gradient, state, count);
}
#endif

template <class T>
void update(const AdamRule& rule, const AdamFactors<T>& factors, T* w, const T* gradient,
            const AdamState<T>& state, std::int64_t count) {
#if defined(__x86_64__)
  if (best_isa() != Isa::kPortable) return update_avx2(rule, factors, w, gradient, state, count);
#endif
  internal::adam_loops(rule, factors, w, gradient, state, count);
}

}  // namespace

template <>
void adam_update(const AdamRule& rule, const AdamFactors<float>& factors, float* w,
                 const float* gradient, const AdamState<float>& state, std::int64_t count) {
  update(rule, factors, w, gradient, state, count);
}

template <>
void adam_update(const AdamRule& rule, const AdamFactors<double>& factors, double* w,
                 const double* gradient, const AdamState<double>& state, std::int64_t count) {
  update(rule, factors, w, gradient, state, count);
}

}  // namespace ddproof
