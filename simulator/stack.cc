#include "simulator/stack.h"

#include <sys/mman.h>

#include <stdexcept>
#include <string>

#include "simulator/sanitizers.h"

namespace ddproof::sim {
namespace {

// What fibers touch in a switch lies at the top of their stacks. If all tops had the same place in
// a page, thousands of them would share a few sets of the processor's caches.
constexpr std::size_t kColors = 8;
constexpr std::size_t kColorBytes = 64;

}  // namespace

StackPool::~StackPool() {
  for (std::byte* slab : slabs_) munmap(slab, kSlabStacks * (kGuardBytes + kStackBytes));
}

Stack StackPool::acquire() {
  if (!free_.empty()) {
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  const std::size_t place = made_ % kSlabStacks;
  if (place == 0) {
    void* slab = mmap(nullptr, kSlabStacks * (kGuardBytes + kStackBytes), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab == MAP_FAILED) fail();
    slabs_.push_back(static_cast<std::byte*>(slab));
  }
  std::byte* bottom = slabs_.back() + place * (kGuardBytes + kStackBytes) + kGuardBytes;
  if (mprotect(bottom, kStackBytes, PROT_READ | PROT_WRITE) != 0) fail();
  return Stack{bottom, made_++ % kColors * kColorBytes};
}

void StackPool::fail() const {
  throw std::runtime_error("no memory for the stack of fiber " + std::to_string(made_ + 1) +
                           ": each takes two mappings; raise vm.max_map_count or use fewer ranks");
}

void StackPool::release(Stack stack) {
  // Frames that were left by a jump never cleared their red zones.
  sanitizer_unpoison(stack.bottom, kStackBytes);
  free_.push_back(stack);
}

}  // namespace ddproof::sim
