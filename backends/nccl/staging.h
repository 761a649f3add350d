// How the data of one call come to where NCCL takes them, and the result to where the caller wants
// it. All of it goes through the group's stream; nothing waits here.
//
//   direct     the caller's device memory is what NCCL works on
//   from host  pinned memory <- buffer; device <- pinned memory; NCCL; pinned memory <- device; and
//              once all that is done, buffer <- pinned memory: so a call that fails has changed no
//              buffer
//   converted  the caller's device memory, with elements that are others on the wire
//              (wire_format.h), or a quotient: through pinned memory, where host functions of the
//              stream convert
// Requires, for all: the calling thread's device is the group's. Throws LibraryError.
#pragma once

#include <cstddef>
#include <optional>

#include "backends/api/buffer.h"
#include "backends/nccl/device_side.h"
#include "backends/nccl/wire_format.h"

namespace ddproof::nccl {

// As NCCL counts.
inline std::size_t elements_of(const ConstBuffer& buffer) {
  return static_cast<std::size_t>(buffer.count());
}

// What a call takes and gives on this rank. Either may be empty.
struct Transfer {
  ConstBuffer in;
  Buffer out;
  WireFormat format;
  int divisor = 1;          // of what comes out
  bool over_input = false;  // when staged, the result takes the input's place

  bool is_on_device() const { return (in.count() > 0 ? in.stream() : out.stream()) != nullptr; }
};

class Staging {
 public:
  explicit Staging(const Transfer& transfer);

  // How much device memory bring_in() wants.
  std::size_t bytes_on_device() const;
  // Before NCCL's part: the input is at in(). `memory` is the call's until bring_out().
  void bring_in(DeviceSide& device, std::byte* memory);
  // After NCCL's part, which has put the result at out().
  void bring_out(DeviceSide& device) const;
  // Once all that is done: the result is in the caller's host memory; pinned memory is given back.
  void deliver() const;

  // Where NCCL takes and puts the data; equal when there is no result. The input of a call that is
  // not in place is only read.
  std::byte* in(std::size_t offset = 0) const { return in_ + offset; }
  std::byte* out(std::size_t offset = 0) const { return out_ + offset; }

 private:
  enum class Way { kDirect, kFromHost, kConverted };
  struct Conversion;

  Way way() const;
  std::size_t in_bytes() const;   // on the wire
  std::size_t out_bytes() const;  // on the wire
  std::size_t out_begin() const;
  std::size_t raw_begin() const;  // in pinned memory, behind what is as on the device
  std::size_t raw_bytes() const;
  // In the stream, from or to the raw elements in pinned memory.
  void convert(DeviceSide& device, bool to_wire) const;

  Transfer transfer_;
  std::optional<PinnedPool::Lease> pinned_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

}  // namespace ddproof::nccl
