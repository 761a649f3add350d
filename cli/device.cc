#include "cli/device.h"

#include <fmt/format.h>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cuda/cuda_module.h"

namespace ddproof {
namespace {

bool is_cuda(const DeviceFlags& flags, const Backend& backend) {
  if (flags.device.empty()) return backend.capabilities().device_buffers;
  return flags.device == "cuda";
}

CudaMath math_of(const DeviceFlags& flags) {
  if (flags.math == "fast") return CudaMath::kFast;
  return flags.math == "tf32" ? CudaMath::kFastTf32 : CudaMath::kFixedOrder;
}

}  // namespace

void declare_device_flags(Arguments& arguments, DeviceFlags& flags) {
  arguments.choice("--device", flags.device, {"cpu", "cuda"},
                   "what ranks compute on; left out: CUDA with --backend nccl, else the CPU");
  arguments.choice("--math", flags.math, {"fixed-order", "fast", "tf32"},
                   "on CUDA: the bits of the CPU (left out: this); cuBLAS; cuBLAS with TF32");
}

std::string as_words(const DeviceFlags& flags) {
  std::string words;
  if (!flags.device.empty()) words += " --device " + flags.device;
  if (!flags.math.empty()) words += " --math " + flags.math;
  return words;
}

void require_device_fits(const DeviceFlags& flags, const Backend& backend, bool talks) {
  if (!is_cuda(flags, backend)) {
    if (flags.math.empty()) return;
    throw ConfigError(
        "--math is of CUDA devices, and ranks compute on the CPU; leave it out, or "
        "add --device cuda");
  }
  if (!talks || backend.capabilities().device_buffers) return;
  throw ConfigError(
      fmt::format("--device cuda: the backend {} sends host memory alone; use "
                  "--backend nccl, or --device cpu",
                  backend.name()));
}

std::unique_ptr<Device<float>> make_device(const DeviceFlags& flags, const Backend& backend,
                                           int index) {
  if (!is_cuda(flags, backend)) return std::make_unique<Cpu<float>>();
  return make_cuda_device(index, math_of(flags));
}

}  // namespace ddproof
