// Stacks for fibers: mapped lazily (only touched pages cost memory), with a wide guard below so
// that an overflow faults instead of writing into a neighbour. 1 MiB holds what libraries take
// (Eigen puts up to 256 KiB of temporaries on the stack); the guard is wider than any of their
// frames, because one large alloca could jump over a single page.
//
// Limit: two mappings per stack, and Linux allows 65,530 per process by default
// (vm.max_map_count), so about 32,700 live stacks.
// Threads: a StackPool belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace ddproof::sim {

inline constexpr std::size_t kStackBytes = std::size_t{1} << 20;
inline constexpr std::size_t kGuardBytes = std::size_t{128} << 10;

struct Stack {
  std::byte* bottom = nullptr;  // lowest usable byte
  std::size_t unused = 0;       // this many bytes at the top
  std::byte* top() const { return bottom + kStackBytes - unused; }
};

// Hands out stacks and keeps returned ones for the next fiber. Address space is reserved for many
// stacks at a time, which halves what making one costs.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Throws std::runtime_error with the number of live stacks and the limit when the operating
  // system gives no more.
  Stack acquire();
  void release(Stack stack);

 private:
  static constexpr std::size_t kSlabStacks = 64;
  [[noreturn]] void fail() const;

  std::vector<Stack> free_;
  std::vector<std::byte*> slabs_;
  std::size_t made_ = 0;
};

}  // namespace ddproof::sim
