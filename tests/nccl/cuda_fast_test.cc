// The fast mode: products by cuBLAS, here by a stand-in that adds in another order. Held by the
// rounding bound of dot products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cuda/fast_cuda.h"
#include "reference/oracle/rounding_bound.h"
#include "tests/nccl/cuda_world.h"
#include "tests/nccl/layer_work.h"

namespace ddproof {
namespace {

using Lines = std::vector<std::string>;

// Terms in one element of each result.
struct Terms {
  std::int64_t y, dx, dw;
};
Terms terms_of(const LinearShape& s) { return {s.in + 1, s.out, s.batch + 1}; }
Terms terms_of(const Conv2dShape& s) {
  return {s.taps() + 1, s.out_channels * s.kernel * s.kernel,
          s.batch * s.out_height() * s.out_width() + 1};
}

// The largest |error| / bound. `factor_error`: what each factor may be off by, relative.
template <class T>
double worst_ratio(const std::vector<T>& actual, const std::vector<double>& exact,
                   const std::vector<double>& magnitudes, std::int64_t terms, double factor_error) {
  EXPECT_EQ(actual.size(), exact.size());
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double bound = dot_product_bound(terms, kPrecisionOf<T>, magnitudes[i]) +
                         dot_product_bound(terms, kPrecisionOf<double>, magnitudes[i]) +
                         factor_error * (2 + factor_error) * magnitudes[i];
    worst = std::max(worst, std::fabs(static_cast<double>(actual[i]) - exact[i]) / bound);
  }
  return worst;
}

template <class T, class LayerShape>
double worst_ratio(const LayerShape& s, const LayerResults<T>& actual, double factor_error) {
  Cpu<double> cpu;
  const std::int64_t all = std::max<std::int64_t>(s.batch, 1);
  const LayerResults<double> exact = run_layer<double>(cpu, s, all);
  const LayerResults<double> magnitudes = run_layer<double>(cpu, s, all, true);
  const Terms terms = terms_of(s);
  return std::max(
      {worst_ratio(actual.y, exact.y, magnitudes.y, terms.y, factor_error),
       worst_ratio(actual.dx, exact.dx, magnitudes.dx, terms.dx, factor_error),
       worst_ratio(actual.dw, exact.dw, magnitudes.dw, terms.dw, factor_error),
       worst_ratio(actual.dbias, exact.dbias, magnitudes.dbias, terms.dw, factor_error)});
}

template <class T, class LayerShape>
LayerResults<T> run_fast(const LayerShape& s, CudaMath math, std::int64_t column_bytes = 1 << 20) {
  LayerResults<T> results;
  on_cuda([&] {
    FastCuda<T> cuda(0, math, column_bytes);
    results = run_layer<T>(cuda, s, 3);
  });
  return results;
}

const std::vector<LinearShape> kLinear = {{0, 3, 2}, {1, 1, 1}, {7, 31, 17}, {65, 67, 71}};
const std::vector<Conv2dShape> kConv = {
    {0, 2, 5, 5, 3, 3, 1, 1, 1},   {2, 1, 28, 28, 32, 3, 1, 1, 1}, {4, 3, 9, 7, 5, 3, 2, 1, 1},
    {1, 2, 11, 13, 7, 3, 1, 2, 2}, {5, 4, 6, 5, 17, 1, 1, 0, 1},   {1, 1, 3, 3, 2, 2, 1, 3, 1},
    {4, 2, 10, 10, 3, 4, 3, 2, 2}};

template <class LayerShape>
void expect_within_bound(const std::vector<LayerShape>& shapes) {
  bool order_differs = false;
  for (const LayerShape& s : shapes) {
    const LayerResults<float> fast = run_fast<float>(s, CudaMath::kFast);
    const double worst = worst_ratio(s, fast, 0);
    std::printf("largest |error|/bound %.3f\n", worst);
    EXPECT_LE(worst, 1);
    Cpu<float> cpu;
    const std::int64_t all = std::max<std::int64_t>(s.batch, 1);
    order_differs |= !have_same_bits(fast.all(), run_layer<float>(cpu, s, all).all());
  }
  EXPECT_TRUE(order_differs);
}

TEST(CudaFast, LinearLayersStayWithinTheRoundingBound) { expect_within_bound(kLinear); }

TEST(CudaFast, ConvolutionsStayWithinTheRoundingBound) { expect_within_bound(kConv); }

// All sums of these values are exact in double, in any order.
TEST(CudaFast, ExactSumsAreExact) {
  for (const LinearShape& s : kLinear) {
    EXPECT_EQ(worst_ratio(s, run_fast<double>(s, CudaMath::kFast), 0), 0);
  }
  for (const Conv2dShape& s : kConv) {
    EXPECT_EQ(worst_ratio(s, run_fast<double>(s, CudaMath::kFast), 0), 0);
  }
}

TEST(CudaFast, ABatchThatDoesNotFitIsUnrolledInParts) {
  for (const Conv2dShape& s : kConv) {
    EXPECT_LE(worst_ratio(s, run_fast<float>(s, CudaMath::kFast, 1), 0), 1);
    EXPECT_LE(worst_ratio(s, run_fast<float>(s, CudaMath::kFast, 6000), 0), 1);
  }
}

TEST(CudaFast, ConvolutionsWithoutABiasAreThoseOfAZeroOne) {
  for (const Conv2dShape& s : kConv) {
    on_cuda([&] {
      FastCuda<float> cuda(0, CudaMath::kFast);
      const LayerSizes n = sizes_of(s);
      std::mt19937_64 engine(11);
      const auto draw = [&](std::int64_t count) {
        return to_device<float>(cuda, testing::random_values<float>(engine, count));
      };
      const Tensor<float> x = draw(s.batch * n.x), w = draw(n.w), dy = draw(s.batch * n.y);
      const Tensor<float> zeros(cuda, {n.bias});
      Tensor<float> dbias(cuda, {n.bias});
      std::vector<std::vector<float>> y, dw;
      for (const bool has_bias : {true, false}) {
        Tensor<float> out(cuda, {s.batch * n.y}), gradient(cuda, {n.w});
        cuda.conv2d_forward(s, x.data(), w.data(), has_bias ? zeros.data() : nullptr, out.data());
        cuda.conv2d_backward_parameters(s, dy.data(), x.data(), gradient.data(),
                                        has_bias ? dbias.data() : nullptr);
        y.push_back(to_host(out)), dw.push_back(to_host(gradient));
      }
      EXPECT_EQ(y[0], y[1]);
      EXPECT_EQ(dw[0], dw[1]);
    });
  }
}

TEST(CudaFast, Tf32IsUsedWhereItIsAskedForAndIsWithinItsOwnBound) {
  const LinearShape s{65, 67, 71};
  const LayerResults<float> results = run_fast<float>(s, CudaMath::kFastTf32);
  EXPECT_GT(worst_ratio(s, results, 0), 1);
  EXPECT_LE(worst_ratio(s, results, 0x1p-11), 1);
}

TEST(CudaFast, FailuresOfCublasAreResourceErrors) {
  const auto error_of = [](const char* call, cudaError_t code) {
    std::string text = "none";
    const Lines complaints = complaints_on_cuda(
        [&] {
          try {
            FastCuda<float> cuda(0, CudaMath::kFast);
            (void)run_layer<float>(cuda, LinearShape{2, 2, 2}, 2);
          } catch (const ResourceError& error) {
            text = error.what();
          }
        },
        1, {.scripts = {{.call = call, .code = code}}});
    EXPECT_EQ(complaints, Lines{});
    return text;
  };
  EXPECT_EQ(error_of("cublasCreate", cudaErrorMemoryAllocation),
            "CUDA device 0: cublasCreate: CUBLAS_STATUS_ALLOC_FAILED");
  EXPECT_EQ(error_of("cublasSetStream", cudaErrorLaunchFailure),
            "CUDA device 0: cublasSetStream: CUBLAS_STATUS_EXECUTION_FAILED");
  EXPECT_EQ(error_of("cudaLaunchKernel", cudaErrorLaunchFailure),
            "CUDA device 0: spread_bias: unspecified launch failure");
}

TEST(CudaFast, TheStandinNamesMisuseOfCublas) {
  EXPECT_EQ(complaints_on_cuda([] {
              cublasHandle_t handle = nullptr;
              (void)cublasCreate(&handle);
              (void)cublasDestroy(handle);
              EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_INVALID_VALUE);
              (void)cublasCreate(&handle);
              const float one = 1;
              EXPECT_EQ(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one,
                                                   nullptr, CUDA_R_32F, 1, 0, nullptr, CUDA_R_32F,
                                                   2, 0, &one, nullptr, CUDA_R_32F, 2, 0, 1,
                                                   CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                        CUBLAS_STATUS_INVALID_VALUE);
            }),
            (Lines{"rank 0: cublasDestroy: the handle was destroyed",
                   "rank 0: cublasGemmStridedBatchedEx: sizes, leading dimensions or types do not "
                   "fit",
                   "rank 0: cudaMallocHost: 8 bytes were never freed"}));
}

}  // namespace
}  // namespace ddproof
