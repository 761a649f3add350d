#include "backends/nccl/cuda_calls.h"

namespace ddproof::nccl {

void check_cuda(cudaError_t result, const std::string& call) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // so that no later call reports this one again
  throw LibraryError(call + ": " + cudaGetErrorString(result));
}

void use_device(int device) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice to " + std::to_string(device));
}

Stream::Stream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

Stream::~Stream() { (void)cudaStreamDestroy(stream_); }

Event::Event() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}

Event::~Event() { (void)cudaEventDestroy(event_); }

void Event::record(cudaStream_t stream) {
  check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
}

void Event::hold_back(cudaStream_t stream) const {
  check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
}

bool Event::is_done() const {
  const cudaError_t result = cudaEventQuery(event_);
  if (result == cudaErrorNotReady) return false;
  check_cuda(result, "cudaEventQuery");
  return true;
}

std::byte* DeviceMemory::at_least(std::size_t bytes) {
  if (bytes > bytes_) {
    release();
    check_cuda(cudaMallocAsync(&data_, bytes, stream_.get()),
               "cudaMallocAsync of " + std::to_string(bytes) + " bytes");
    bytes_ = bytes;
  }
  return static_cast<std::byte*>(data_);
}

void DeviceMemory::release() noexcept {
  if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_.get());
  data_ = nullptr;
  bytes_ = 0;
}

namespace {

std::string mine(int device) { return ", this rank's device is " + std::to_string(device); }

}  // namespace

std::string why_not_on(int device, const void* memory) {
  cudaPointerAttributes known{};
  check_cuda(cudaPointerGetAttributes(&known, memory), "cudaPointerGetAttributes");
  const bool is_on_device =
      known.type == cudaMemoryTypeDevice || known.type == cudaMemoryTypeManaged;
  if (!is_on_device) return "it has a stream, but is not in device memory" + mine(device);
  if (known.device == device) return "";
  return "it is memory of device " + std::to_string(known.device) + mine(device);
}

std::string why_not_on(int device, cudaStream_t stream) {
  int of = -1;
  check_cuda(cudaStreamGetDevice(stream, &of), "cudaStreamGetDevice");
  if (of == device) return "";
  return "its stream is of device " + std::to_string(of) + mine(device);
}

int count_devices() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

DeviceIdentity identify_device(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device),
             "cudaGetDeviceProperties of device " + std::to_string(device));
  DeviceIdentity identity{{}, properties.name};
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char byte : properties.uuid.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    identity.uuid += kDigits[value >> 4];
    identity.uuid += kDigits[value & 0xf];
  }
  return identity;
}

}  // namespace ddproof::nccl
