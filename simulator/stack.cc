#include "simulator/stack.h"

#include <sys/mman.h>

#include <stdexcept>
#include <string>

#include "simulator/sanitizers.h"

namespace ddproof::sim {

StackPool::~StackPool() {
  for (const Stack& stack : free_) {
    munmap(stack.bottom - kGuardBytes, kGuardBytes + kStackBytes);
  }
}

Stack StackPool::acquire() {
  if (!free_.empty()) {
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    if (memory != MAP_FAILED) munmap(memory, kGuardBytes + kStackBytes);
    throw std::runtime_error(
        "no memory for the stack of fiber " + std::to_string(mapped_ + 1) +
        ": each takes two mappings; raise vm.max_map_count or use fewer ranks");
  }
  ++mapped_;
  return Stack{static_cast<std::byte*>(memory) + kGuardBytes};
}

void StackPool::release(Stack stack) {
  // Frames that were left by a jump never cleared their red zones.
  sanitizer_unpoison(stack.bottom, kStackBytes);
  free_.push_back(stack);
}

}  // namespace ddproof::sim
