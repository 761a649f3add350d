#include "backends/nccl/staging.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/api/reduce_functions.h"

namespace ddproof::nccl {
namespace {

// NCCL is at its best with addresses that are.
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void encode(const WireFormat& format, std::byte* wire, const ConstBuffer& from) {
  if (from.count() == 0) return;
  if (format.encode != nullptr) return format.encode(wire, from.data(), elements_of(from));
  std::memcpy(wire, from.data(), from.bytes());
}

void decode(const WireFormat& format, int divisor, const std::byte* wire, const Buffer& to) {
  if (to.count() == 0) return;
  if (format.decode != nullptr) {
    format.decode(to.data(), wire, elements_of(to));
  } else {
    std::memcpy(to.data(), wire, to.bytes());
  }
  if (divisor > 1) divide(to, divisor);
}

void copy(DeviceSide& device, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, kind, device.stream.get()), "cudaMemcpyAsync");
}

}  // namespace

// The argument of a host function. It lies in the pinned memory that it works on, which is freed
// only when the device has done all its work, also that of a call that failed.
struct Staging::Conversion {
  WireFormat format;
  int divisor;
  std::byte* wire;
  Buffer raw;
  bool to_wire;

  static void run(void* argument) {
    const auto& self = *static_cast<const Conversion*>(argument);
    if (self.to_wire) return encode(self.format, self.wire, self.raw);
    decode(self.format, self.divisor, self.wire, self.raw);
  }
};

Staging::Staging(const Transfer& transfer) : transfer_(transfer) {}

Staging::Way Staging::way() const {
  if (!transfer_.is_on_device()) return Way::kFromHost;
  const bool is_plain = transfer_.format.encode == nullptr && transfer_.divisor == 1;
  return is_plain ? Way::kDirect : Way::kConverted;
}

std::size_t Staging::in_bytes() const {
  return elements_of(transfer_.in) * transfer_.format.element_bytes;
}

std::size_t Staging::out_bytes() const {
  return elements_of(transfer_.out) * transfer_.format.element_bytes;
}

std::size_t Staging::out_begin() const { return transfer_.over_input ? 0 : aligned(in_bytes()); }

std::size_t Staging::raw_begin() const {
  return aligned(std::max(in_bytes(), out_begin() + out_bytes()));
}

std::size_t Staging::raw_bytes() const {
  return aligned(std::max(transfer_.in.bytes(), transfer_.out.bytes()));
}

std::size_t Staging::bytes_on_device() const { return way() == Way::kDirect ? 0 : raw_begin(); }

void Staging::bring_in(DeviceSide& device, std::byte* memory) {
  if (way() == Way::kDirect) {
    out_ = static_cast<std::byte*>(transfer_.out.data());
    in_ = static_cast<std::byte*>(const_cast<void*>(transfer_.in.data()));
    if (transfer_.out.count() == 0) out_ = in_;
    return;
  }
  in_ = memory;
  out_ = transfer_.out.count() == 0 ? in_ : memory + out_begin();
  const bool converts = way() == Way::kConverted;
  const std::size_t more = converts ? raw_bytes() + 2 * sizeof(Conversion) : 0;
  pinned_.emplace(device.pinned.take(raw_begin() + more));
  if (converts) {
    copy(device, pinned_->data() + raw_begin(), transfer_.in.data(), transfer_.in.bytes(),
         cudaMemcpyDeviceToHost);
    convert(device, true);
  } else {
    encode(transfer_.format, pinned_->data(), transfer_.in);
  }
  copy(device, in_, pinned_->data(), in_bytes(), cudaMemcpyHostToDevice);
}

void Staging::bring_out(DeviceSide& device) const {
  if (way() == Way::kDirect || transfer_.out.count() == 0) return;
  copy(device, pinned_->data() + out_begin(), out_, out_bytes(), cudaMemcpyDeviceToHost);
  if (way() == Way::kFromHost) return;
  convert(device, false);
  copy(device, transfer_.out.data(), pinned_->data() + raw_begin(), transfer_.out.bytes(),
       cudaMemcpyHostToDevice);
}

void Staging::convert(DeviceSide& device, bool to_wire) const {
  std::byte* const pinned = pinned_->data();
  std::byte* const place = pinned + raw_begin() + raw_bytes() + (to_wire ? 0 : sizeof(Conversion));
  const std::int64_t count = to_wire ? transfer_.in.count() : transfer_.out.count();
  const ElementType type = to_wire ? transfer_.in.type() : transfer_.out.type();
  auto* const conversion = new (place)
      Conversion{transfer_.format, transfer_.divisor, pinned + (to_wire ? 0 : out_begin()),
                 Buffer(pinned + raw_begin(), type, Layout(count)), to_wire};
  check_cuda(cudaLaunchHostFunc(device.stream.get(), &Conversion::run, conversion),
             "cudaLaunchHostFunc");
}

void Staging::deliver() const {
  if (way() == Way::kDirect) return;
  if (way() == Way::kFromHost) {
    decode(transfer_.format, transfer_.divisor, pinned_->data() + out_begin(), transfer_.out);
  }
  pinned_->give_back();
}

}  // namespace ddproof::nccl
