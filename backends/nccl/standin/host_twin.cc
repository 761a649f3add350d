#include "backends/nccl/standin/host_twin.h"

#include <utility>

#include "backends/nccl/standin/cuda_call.h"

namespace ddproof::standin {
namespace {

// A kernel has no business with host memory; not even with pinned memory here.
bool access_operand(const Stream& stream, const std::string& kernel, const Operand& operand) {
  if (operand.bytes == 0) return true;
  const Memory::Block* block = stream.machine.memory().find(operand.data);
  if (block == nullptr || block->kind != Memory::Kind::kDevice) {
    stream.machine.complain_for(stream.rank, kernel, "is given host memory");
    stream.device.error = cudaErrorIllegalAddress;
    return false;
  }
  const char* how = operand.is_written ? "writes" : "reads";
  if (!access(stream, kernel, operand.data, operand.bytes, how)) return false;
  if (operand.is_read) check_written(stream, kernel, operand.data, operand.bytes);
  return true;
}

void run_twin(const Stream& stream, const std::string& kernel, const std::vector<Operand>& operands,
              const std::function<void()>& body) {
  for (const Operand& operand : operands) {
    if (!access_operand(stream, kernel, operand)) return;
  }
  body();
  for (const Operand& operand : operands) {
    if (operand.is_written) {
      stream.machine.memory().note_written(const_cast<void*>(operand.data), operand.bytes);
    }
  }
}

}  // namespace

cudaError_t launch_twin(const std::string& kernel, std::vector<Operand> operands,
                        std::function<void()> body, cudaStream_t stream) {
  return answer("cudaLaunchKernel", [&](Machine& machine) {
    if (is_stale(machine, kernel.c_str(), stream)) return cudaErrorInvalidResourceHandle;
    if (&stream->device != &machine.device()) {
      machine.complain(kernel, "launched on " + machine.device().name() + " in a stream of " +
                                   stream->device.name());
      return cudaErrorInvalidResourceHandle;
    }
    stream->enqueue([=, operands = std::move(operands), body = std::move(body)] {
      run_twin(*stream, kernel, operands, body);
    });
    return cudaSuccess;
  });
}

}  // namespace ddproof::standin
