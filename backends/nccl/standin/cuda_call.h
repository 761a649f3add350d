// What the functions of the CUDA runtime have in common here: scripts, errors, checks.
//
// Threads: those of one simulation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "backends/nccl/standin/machine.h"
#include "backends/nccl/standin/stream.h"

namespace ddproof::standin {

// Counts the call, plays what is scripted, and remembers the error, as cudaGetLastError() wants it.
// `body(machine)` runs on a device that works.
template <class Body>
cudaError_t answer(const char* call, Body&& body) {
  Machine* machine = current_machine();
  if (machine == nullptr || !machine->options().has_driver) return cudaErrorInsufficientDriver;
  if (machine->thread().in_host_function) {
    machine->complain(call, "called in a host function, which must not call CUDA");
    return cudaErrorNotPermitted;
  }
  cudaError_t result = cudaSuccess;
  if (const Script* script = machine->meet_script(call)) {
    if (script->effect == Script::Effect::kHang) machine->hang(call);
    if (script->effect == Script::Effect::kSkip) return cudaSuccess;
    if (script->effect == Script::Effect::kReturn) result = static_cast<cudaError_t>(script->code);
    if (script->effect == Script::Effect::kLoseDevice) {
      machine->device().error = cudaErrorLaunchFailure;
    }
  }
  if (result == cudaSuccess) result = machine->device().error;
  if (result == cudaSuccess) result = body(*machine);
  if (result != cudaSuccess && result != cudaErrorNotReady) machine->thread().last_error = result;
  return result;
}

// Whether it may not be used, which is complained about.
bool is_stale(Machine& machine, const char* call, cudaStream_t stream);
bool is_stale(Machine& machine, const char* call, cudaEvent_t event);

// False, and the device is lost, when the access is illegal. `how`: "reads" or "writes".
bool access(const Stream& stream, const std::string& call, const void* address, std::size_t bytes,
            const char* how);

// Complains where it is device memory that was never written.
void check_written(const Stream& stream, const std::string& call, const void* from,
                   std::size_t bytes);

}  // namespace ddproof::standin
