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

std::byte* StagingMemory::at_least(std::size_t bytes) {
  if (bytes <= bytes_) return data_;
  release();
  void* data = nullptr;
  const std::string what = " of " + std::to_string(bytes) + " bytes on device ";
  if (place_ == Place::kDevice) {
    check_cuda(cudaMalloc(&data, bytes), "cudaMalloc" + what + std::to_string(device_));
  } else {
    check_cuda(cudaMallocHost(&data, bytes), "cudaMallocHost" + what + std::to_string(device_));
  }
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
  return data_;
}

void StagingMemory::release() noexcept {
  if (data_ == nullptr) return;
  (void)(place_ == Place::kDevice ? cudaFree(data_) : cudaFreeHost(data_));
  data_ = nullptr;
  bytes_ = 0;
}

Stream::Stream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

Stream::~Stream() { (void)cudaStreamDestroy(stream_); }

Event::Event() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}

Event::~Event() { (void)cudaEventDestroy(event_); }

void Event::record(const Stream& stream) {
  check_cuda(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
}

bool Event::is_done() const {
  const cudaError_t result = cudaEventQuery(event_);
  if (result == cudaErrorNotReady) return false;
  check_cuda(result, "cudaEventQuery");
  return true;
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
