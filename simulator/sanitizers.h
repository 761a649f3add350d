// Tells the sanitizers about stack switches. Without a sanitizer everything here is empty.
//
// The address sanitizer must know the bounds of the running stack, or it reports overflows that do
// not exist when an exception unwinds; the thread sanitizer must know which fiber runs.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define DDPROOF_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DDPROOF_SIM_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define DDPROOF_SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DDPROOF_SIM_TSAN 1
#endif
#endif

#ifdef DDPROOF_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef DDPROOF_SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace ddproof::sim {

inline void sanitizer_unpoison([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef DDPROOF_SIM_ASAN
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

// One side of a switch: a fiber, or the code that resumes fibers.
class SanitizerSide {
 public:
#ifdef DDPROOF_SIM_ASAN
  void set_bounds(const void* bottom, std::size_t size) { bottom_ = bottom, size_ = size; }
  // Just before jumping from this side to `to`. `forever`: this side never runs again.
  void leave(const SanitizerSide& to, bool forever) {
    __sanitizer_start_switch_fiber(forever ? nullptr : &fake_stack_, to.bottom_, to.size_);
  }
  // Just after this side got control back from `from`, whose bounds are learned.
  void enter(SanitizerSide& from) {
    __sanitizer_finish_switch_fiber(fake_stack_, &from.bottom_, &from.size_);
  }

 private:
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
#elif defined(DDPROOF_SIM_TSAN)
  // The resuming side is a thread that exists already; a fiber's side is made here.
  void make_fiber() { fiber_ = __tsan_create_fiber(0), owned_ = true; }
  ~SanitizerSide() {
    if (owned_) __tsan_destroy_fiber(fiber_);
  }
  void set_bounds(const void*, std::size_t) { make_fiber(); }
  void leave(const SanitizerSide& to, bool) {
    if (!owned_) fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber_, 0);
  }
  void enter(SanitizerSide&) {}

 private:
  void* fiber_ = nullptr;
  bool owned_ = false;
#else
  void set_bounds(const void*, std::size_t) {}
  void leave(const SanitizerSide&, bool) {}
  void enter(SanitizerSide&) {}
#endif
};

}  // namespace ddproof::sim
