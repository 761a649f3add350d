// The CUDA runtime's C API on the current machine (machine.h). Compiled against the real header, so
// a function whose signature drifts does not compile.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "backends/nccl/standin/cuda_call.h"
#include "backends/nccl/standin/machine.h"
#include "backends/nccl/standin/stream.h"

namespace ddproof::standin {
namespace {

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (!access(stream, "cudaMemcpyAsync", from, bytes, "reads")) return;
  if (!access(stream, "cudaMemcpyAsync", to, bytes, "writes")) return;
  check_written(stream, "cudaMemcpyAsync", from, bytes);
  if (bytes > 0) std::memmove(to, from, bytes);
  stream.machine.memory().note_written(to, bytes);
}

bool is_device_memory(Machine& machine, const void* address) {
  const Memory::Block* block = machine.memory().find(address);
  return block != nullptr && block->kind == Memory::Kind::kDevice;
}

// Whether the pointers are where `kind` says.
bool kind_fits(Machine& machine, const void* to, const void* from, cudaMemcpyKind kind) {
  const bool to_device = is_device_memory(machine, to);
  const bool from_device = is_device_memory(machine, from);
  switch (kind) {
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    case cudaMemcpyDefault: return true;
  }
  return false;
}

cudaError_t allocate(Machine& machine, Memory::Kind kind, void** address, std::size_t bytes) {
  *address =
      bytes == 0 ? nullptr : machine.memory().add(kind, machine.device(), machine.rank(), bytes);
  return cudaSuccess;
}

cudaError_t release(Machine& machine, const char* call, void* address, Memory::Kind kind) {
  machine.drain_streams(call);  // both wait for the device
  const std::string wrong = machine.memory().free(address, kind);
  if (wrong.empty()) return cudaSuccess;
  machine.complain(call, wrong);
  return cudaErrorInvalidValue;
}

}  // namespace

}  // namespace ddproof::standin

using ddproof::standin::Machine;
using ddproof::standin::Memory;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return ddproof::standin::answer("cudaGetDeviceCount", [&](Machine& machine) {
    *count = machine.options().devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return ddproof::standin::answer("cudaSetDevice", [&](Machine& machine) {
    if (device < 0 || device >= machine.options().devices) return cudaErrorInvalidDevice;
    machine.thread().device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return ddproof::standin::answer("cudaGetDevice", [&](Machine& machine) {
    *device = machine.thread().device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return ddproof::standin::answer("cudaGetDeviceProperties", [&](Machine& machine) {
    if (device < 0 || device >= machine.options().devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "stand-in");
    const auto& known = machine.device_of(machine.rank(), device);
    properties->uuid.bytes[0] = static_cast<char>(known.host);
    properties->uuid.bytes[1] = static_cast<char>(known.index);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return ddproof::standin::answer("cudaMalloc", [&](Machine& machine) {
    return ddproof::standin::allocate(machine, Memory::Kind::kDevice, address, bytes);
  });
}

// In the order of the stream, without waiting for anything.
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  constexpr const char* kCall = "cudaMallocAsync";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream)) return cudaErrorInvalidResourceHandle;
    *address = machine.memory().add(Memory::Kind::kDevice, stream->device, stream->rank, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  constexpr const char* kCall = "cudaFreeAsync";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream)) return cudaErrorInvalidResourceHandle;
    stream->enqueue([=] {
      const std::string wrong = stream->machine.memory().free(address, Memory::Kind::kDevice);
      if (!wrong.empty()) stream->machine.complain_for(stream->rank, kCall, wrong);
    });
    return cudaSuccess;
  });
}

// A device has one pool, which keeps nothing: what is freed stays unusable, so that its use shows.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return ddproof::standin::answer("cudaDeviceGetDefaultMemPool", [&](Machine& machine) {
    if (device < 0 || device >= machine.options().devices) return cudaErrorInvalidDevice;
    *pool = reinterpret_cast<cudaMemPool_t>(&machine.device_of(machine.rank(), device));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return ddproof::standin::answer("cudaMemPoolSetAttribute", [](Machine&) { return cudaSuccess; });
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return ddproof::standin::answer("cudaMallocHost", [&](Machine& machine) {
    return ddproof::standin::allocate(machine, Memory::Kind::kPinnedHost, address, bytes);
  });
}

cudaError_t cudaFree(void* address) {
  return ddproof::standin::answer("cudaFree", [&](Machine& machine) {
    return ddproof::standin::release(machine, "cudaFree", address, Memory::Kind::kDevice);
  });
}

cudaError_t cudaFreeHost(void* address) {
  return ddproof::standin::answer("cudaFreeHost", [&](Machine& machine) {
    return ddproof::standin::release(machine, "cudaFreeHost", address, Memory::Kind::kPinnedHost);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  constexpr const char* kCall = "cudaMemcpyAsync";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream)) return cudaErrorInvalidResourceHandle;
    if (!ddproof::standin::kind_fits(machine, to, from, kind)) {
      machine.complain(kCall, "the pointers are not where the kind of copy says");
      return cudaErrorInvalidValue;
    }
    // Pageable memory is read, or written, before the call returns.
    const bool is_pinned =
        machine.memory().find(to) != nullptr && machine.memory().find(from) != nullptr;
    stream->enqueue([=] { ddproof::standin::copy(*stream, to, from, bytes); });
    if (!is_pinned) stream->drain(kCall);
    return stream->device.error;
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  constexpr const char* kCall = "cudaMemsetAsync";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream)) return cudaErrorInvalidResourceHandle;
    stream->enqueue([=] {
      if (!ddproof::standin::access(*stream, kCall, to, bytes, "writes")) return;
      if (bytes > 0) std::memset(to, value, bytes);
      stream->machine.memory().note_written(to, bytes);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  return ddproof::standin::answer("cudaStreamCreateWithFlags", [&](Machine& machine) {
    *stream = machine.add_stream();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return ddproof::standin::answer("cudaStreamDestroy", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaStreamDestroy", stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    stream->destroyed = true;  // what is in it still runs
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return ddproof::standin::answer("cudaStreamSynchronize", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaStreamSynchronize", stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    stream->drain("cudaStreamSynchronize");
    return stream->device.error;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return ddproof::standin::answer("cudaStreamGetDevice", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaStreamGetDevice", stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    *device = stream->device.index;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return ddproof::standin::answer("cudaPointerGetAttributes", [&](Machine& machine) {
    *attributes = {};
    const Memory::Block* block = machine.memory().find(address);
    if (block == nullptr || block->freed) return cudaSuccess;
    attributes->type =
        block->kind == Memory::Kind::kDevice ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    attributes->device = block->device->index;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  constexpr const char* kCall = "cudaStreamWaitEvent";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream) ||
        ddproof::standin::is_stale(machine, kCall, event)) {
      return cudaErrorInvalidResourceHandle;
    }
    stream->enqueue(
        [=, record = event->recorded] { event->await(stream->machine, record, kCall); });
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  return ddproof::standin::answer("cudaEventCreateWithFlags", [&](Machine& machine) {
    *event = machine.add_event();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ddproof::standin::answer("cudaEventDestroy", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaEventDestroy", event)) {
      return cudaErrorInvalidResourceHandle;
    }
    event->destroyed = true;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  constexpr const char* kCall = "cudaEventRecord";
  return ddproof::standin::answer(kCall, [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, kCall, stream) ||
        ddproof::standin::is_stale(machine, kCall, event)) {
      return cudaErrorInvalidResourceHandle;
    }
    if (&event->device != &stream->device) {
      machine.complain(kCall, "the event is of " + event->device.name() + ", the stream of " +
                                  stream->device.name());
      return cudaErrorInvalidResourceHandle;
    }
    stream->enqueue([=, record = ++event->recorded] {
      event->reached = std::max(event->reached, record);
      event->changed.wake_all(stream->machine.simulation());
    });
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return ddproof::standin::answer("cudaEventQuery", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaEventQuery", event)) {
      return cudaErrorInvalidResourceHandle;
    }
    return event->is_done() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return ddproof::standin::answer("cudaEventSynchronize", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaEventSynchronize", event)) {
      return cudaErrorInvalidResourceHandle;
    }
    event->await(machine, event->recorded, "cudaEventSynchronize");
    return event->device.error;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return ddproof::standin::answer("cudaLaunchHostFunc", [&](Machine& machine) {
    if (ddproof::standin::is_stale(machine, "cudaLaunchHostFunc", stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    stream->enqueue([=] {
      bool& inside = stream->machine.thread().in_host_function;
      inside = true;
      function(argument);
      inside = false;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() {
  Machine* machine = ddproof::standin::current_machine();
  if (machine == nullptr) return cudaErrorInsufficientDriver;
  return std::exchange(machine->thread().last_error, cudaSuccess);
}

// The texts of libcudart.so.13.
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotPermitted: return "operation not permitted";
    default: return "unrecognized error code";
  }
}

}  // extern "C"
