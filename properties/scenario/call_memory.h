// Zeroed memory that the system gives page by page, as it is touched: a buffer whose bytes nobody
// reads costs its address space alone.
//
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace ddproof::scenario {

class CallMemory {
 public:
  CallMemory() = default;
  // Throws ResourceError when the address space is not there.
  explicit CallMemory(std::size_t bytes);
  CallMemory(CallMemory&& other) noexcept;
  CallMemory& operator=(CallMemory&& other) noexcept;
  ~CallMemory();

  // Null exactly when size() is 0.
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::vector<std::byte> small_;
  std::byte* data_ = nullptr;  // in small_, or mapped
  std::size_t size_ = 0;
};

}  // namespace ddproof::scenario
