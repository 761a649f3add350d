// A device: owns memory and the operations that the models need.
//
// One instance belongs to one rank. Operations are queued in order; on the CPU they are done when
// the call returns. Implementations: Cpu<T> (cpu.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace ddproof {

template <class T>
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // Zero-filled, 64-byte aligned; count 0 is fine.
  virtual T* allocate(std::int64_t count) = 0;
  virtual void deallocate(T* data) = 0;
  virtual void fill(T* data, std::int64_t count, T value) = 0;
  virtual void copy(T* to, const T* from, std::int64_t count) = 0;
  // to[i] = from[i] * factor, one rounding each.
  virtual void scaled_copy(T* to, const T* from, T factor, std::int64_t count) = 0;
  // Between this device's memory and the host's; done when the call returns.
  virtual void copy_to_host(T* host, const T* device, std::int64_t count) = 0;
  virtual void copy_from_host(T* device, const T* host, std::int64_t count) = 0;
};

}  // namespace ddproof
