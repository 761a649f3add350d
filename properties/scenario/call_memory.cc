#include "properties/scenario/call_memory.h"

#include <sys/mman.h>

#include <string>
#include <utility>

#include "backends/api/error.h"

namespace ddproof::scenario {
namespace {

// A mapping of its own costs a page fault, which small buffers are not worth.
constexpr std::size_t kSmall = std::size_t{64} << 10;

}  // namespace

CallMemory::CallMemory(std::size_t bytes) : size_(bytes) {
  if (bytes <= kSmall) {
    small_.resize(bytes);
    data_ = small_.data();
    return;
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw ResourceError("a buffer of " + std::to_string(bytes) +
                        " bytes: no address space is left; lower the count");
  }
  data_ = static_cast<std::byte*>(mapped);
}

CallMemory::CallMemory(CallMemory&& other) noexcept
    : small_(std::move(other.small_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

CallMemory& CallMemory::operator=(CallMemory&& other) noexcept {
  std::swap(small_, other.small_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

CallMemory::~CallMemory() {
  if (size_ > kSmall) munmap(data_, size_);
}

}  // namespace ddproof::scenario
