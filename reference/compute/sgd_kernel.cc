#include "reference/compute/sgd_kernel.h"

#include "reference/compute/isa.h"

namespace ddproof {
namespace {

#if defined(__x86_64__)
// The loop is limited by memory, so 256-bit vectors are enough; what counts is that the fused
// multiply-add is one instruction and not a call.
template <class T>
[[gnu::target("avx2,fma")]] void update_avx2(const SgdRule& rule, const SgdFactors<T>& factors,
                                             T* w, const T* gradient, T* buffer,
                                             std::int64_t count) {
  internal::sgd_loops(rule, factors, w, gradient, buffer, count);
}
#endif

template <class T>
void update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient, T* buffer,
            std::int64_t count) {
#if defined(__x86_64__)
  if (best_isa() != Isa::kPortable) return update_avx2(rule, factors, w, gradient, buffer, count);
#endif
  internal::sgd_loops(rule, factors, w, gradient, buffer, count);
}

}  // namespace

template <>
void sgd_update(const SgdRule& rule, const SgdFactors<float>& factors, float* w,
                const float* gradient, float* buffer, std::int64_t count) {
  update(rule, factors, w, gradient, buffer, count);
}

template <>
void sgd_update(const SgdRule& rule, const SgdFactors<double>& factors, double* w,
                const double* gradient, double* buffer, std::int64_t count) {
  update(rule, factors, w, gradient, buffer, count);
}

}  // namespace ddproof
