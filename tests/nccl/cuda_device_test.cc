// Cuda<T> as an owner of memory and a stream: what waits and what does not, missing order between
// streams, misuse, and failures of the device.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "tests/nccl/cuda_world.h"

namespace ddproof {
namespace {

using Lines = std::vector<std::string>;
using Effect = standin::Script::Effect;
constexpr std::uint64_t kSeeds = 20;

std::vector<float> ascending(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(CudaDevice, AHostsMemoryMayChangeAsSoonAsItWasCopied) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    on_cuda(
        [] {
          Cuda<float> cuda(0);
          std::vector<Tensor<float>> tensors;
          std::vector<float> values;
          const std::vector<std::size_t> counts = {100, 100, 5000, 3, 100};
          for (std::size_t i = 0; i < counts.size(); ++i) {
            values = ascending(counts[i], static_cast<float>(i));
            tensors.push_back(to_device(cuda, values));
          }
          values.clear();
          for (std::size_t i = 0; i < counts.size(); ++i) {
            EXPECT_EQ(to_host(tensors[i]), ascending(counts[i], static_cast<float>(i)));
          }
        },
        seed);
  }
}

TEST(CudaDevice, MemoryIsZeroAndMayBeGivenBackWhileItIsUsed) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    on_cuda(
        [] {
          Cuda<double> cuda(1);
          Tensor<double> result(cuda, {7});
          {
            Tensor<double> gone(cuda, {7});
            cuda.fill(gone.data(), 7, 0.5);
            cuda.axpy(result.data(), gone.data(), 2, 7);
          }
          EXPECT_EQ(to_host(result), std::vector<double>(7, 1));
          EXPECT_EQ(to_host(Tensor<double>(cuda, {3})), std::vector<double>(3, 0));
          EXPECT_EQ(to_host(Tensor<double>(cuda, {0})), std::vector<double>{});
        },
        seed);
  }
}

// The second device object has a stream of its own: without an event nothing orders the two.
std::vector<float> copy_between_streams(bool with_wait, std::uint64_t seed) {
  std::vector<float> seen;
  on_cuda(
      [&] {
        Cuda<float> first(0), second(0);
        Tensor<float> from(first, {1}), to(second, {1});
        (void)to_host(to);
        (void)to_host(from);
        first.fill(from.data(), 1, 3);
        cudaEvent_t event = nullptr;
        (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        (void)cudaEventRecord(event, static_cast<cudaStream_t>(first.stream()));
        if (with_wait) {
          (void)cudaStreamWaitEvent(static_cast<cudaStream_t>(second.stream()), event, 0);
        }
        second.scaled_copy(to.data(), from.data(), 2, 1);
        seen = to_host(to);
        (void)to_host(from);
        (void)cudaEventDestroy(event);
      },
      seed);
  return seen;
}

TEST(CudaDevice, AMissingOrderOfStreamsGoesWrongUnderSomeSeed) {
  std::set<std::vector<float>> with_wait, without;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    with_wait.insert(copy_between_streams(true, seed));
    without.insert(copy_between_streams(false, seed));
  }
  EXPECT_EQ(with_wait, (std::set<std::vector<float>>{{6}}));
  EXPECT_EQ(without, (std::set<std::vector<float>>{{0}, {6}}));
}

TEST(CudaDevice, KernelsThatAreGivenWrongMemoryAreNamed) {
  const auto complaint = [](const std::function<void(Cuda<float>&, Tensor<float>&)>& body) {
    Lines lines = complaints_on_cuda([&] {
      Cuda<float> cuda(0);
      Tensor<float> tensor(cuda, {8});
      body(cuda, tensor);
      try {
        (void)to_host(tensor);
      } catch (const ResourceError&) {  // the device is lost
      }
    });
    return lines.empty() ? "" : lines[0];
  };
  EXPECT_EQ(complaint([](auto& cuda, auto& tensor) {
              std::vector<float> host(8);
              cuda.scaled_copy(tensor.data(), host.data(), 1, 8);
            }),
            "rank 0: scaled_copy: is given host memory");
  EXPECT_EQ(complaint([](auto& cuda, auto& tensor) { cuda.fill(tensor.data(), 9, 1); }),
            "rank 0: fill: writes bytes 0 to 36 of a block of 32");
  EXPECT_EQ(complaint([](auto& cuda, auto& tensor) {
              const float* gone = Tensor<float>(cuda, {8}).data();
              cuda.relu_forward(gone, tensor.data(), 8);
            }),
            "rank 0: relu_forward: reads memory that was freed");
  EXPECT_EQ(complaint([](auto& cuda, auto& tensor) {
              const float* x = tensor.data();
              cuda.linear_forward({.batch = 2, .in = 2, .out = 2}, x, x + 6, x, tensor.data() + 4);
            }),
            "rank 0: linear_forward: reads bytes 24 to 40 of a block of 32");
  EXPECT_EQ(complaint([](auto&, auto& tensor) {
              Cuda<float> other(1);
              other.axpy(tensor.data(), tensor.data(), 1, 8);
              try {
                (void)to_host(Tensor<float>(other, {1}));
              } catch (const ResourceError&) {
              }
            }),
            "rank 0: axpy: reads memory of device 0 of host 0 from a stream of device 1 of host 0");
}

// What `body` throws when the machine's `script` comes to pass.
std::string error_of(const standin::MachineOptions& options, const std::function<void()>& body) {
  std::string text = "none";
  const StandinReport report = run_on_machine(1, options, 1, [&](int) {
    try {
      body();
    } catch (const ResourceError& error) {
      text = error.what();
    }
  });
  EXPECT_EQ(report.complaints, Lines{});
  return text;
}

TEST(CudaDevice, ADeviceThatIsNotThereIsRefusedByName) {
  const auto make = [] { Cuda<float> cuda(2); };
  EXPECT_EQ(error_of({.devices = 2}, make), "CUDA device 2: cudaSetDevice: invalid device ordinal");
  EXPECT_EQ(error_of({.has_driver = false}, make),
            "CUDA device 2: cudaSetDevice: CUDA driver version is insufficient for CUDA runtime "
            "version");
}

TEST(CudaDevice, FailuresAreResourceErrorsAndLeaveNothingBehind) {
  const auto work = [] {
    Cuda<float> cuda(0);
    Tensor<float> logits(cuda, {2, 3}), loss(cuda, {2}), gradient(cuda, {2, 3});
    const std::vector<std::int64_t> targets = {0, 1};
    cuda.softmax_cross_entropy(2, 3, logits.data(), targets.data(), loss.data(), gradient.data());
    (void)to_host(loss);
  };
  const auto fails = [&](const char* call, int number, cudaError_t code) {
    return error_of({.scripts = {{.call = call, .number = number, .code = code}}}, work);
  };
  EXPECT_EQ(fails("none", 1, cudaSuccess), "none");
  EXPECT_EQ(fails("cudaStreamCreateWithFlags", 1, cudaErrorMemoryAllocation),
            "CUDA device 0: cudaStreamCreate: out of memory");
  EXPECT_EQ(fails("cudaMemPoolSetAttribute", 1, cudaErrorInvalidValue),
            "CUDA device 0: its memory pool: invalid argument");
  EXPECT_EQ(fails("cudaMallocAsync", 2, cudaErrorMemoryAllocation),
            "CUDA device 0: cudaMallocAsync of 8 bytes: out of memory");
  EXPECT_EQ(fails("cudaMallocAsync", 4, cudaErrorMemoryAllocation),
            "CUDA device 0: cudaMallocAsync of 16 bytes: out of memory");
  EXPECT_EQ(fails("cudaMemsetAsync", 2, cudaErrorInvalidValue),
            "CUDA device 0: cudaMemsetAsync: invalid argument");
  EXPECT_EQ(fails("cudaMallocHost", 1, cudaErrorMemoryAllocation),
            "CUDA device 0: cudaMallocHost of 4096 bytes: out of memory");
  EXPECT_EQ(fails("cudaLaunchKernel", 1, cudaErrorLaunchFailure),
            "CUDA device 0: softmax_cross_entropy: unspecified launch failure");
}

TEST(CudaDevice, ALostDeviceIsToldByTheNextOperation) {
  EXPECT_EQ(error_of({.scripts = {{.call = "cudaLaunchKernel", .effect = Effect::kLoseDevice}}},
                     [] {
                       Cuda<float> cuda(0);
                       Tensor<float> tensor(cuda, {3});
                       cuda.fill(tensor.data(), 3, 1);
                     }),
            "CUDA device 0: fill: unspecified launch failure");
}

}  // namespace
}  // namespace ddproof
