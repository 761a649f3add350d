// A flow of control with a stack of its own, and the switch from one to another: the only place
// that knows Boost.Context.
//
// Besides the registers, a switch exchanges the two words in which the C++ runtime keeps the
// exceptions that are caught or in flight on this thread; without that, two fibers that switch
// inside a handler exchange their exceptions (Boost.Context leaves them alone).
//
// Invariants: exactly one of the Contexts that switch to each other runs; a Context's code never
// returns, its last act is to switch away for good.
// Threads: all Contexts that switch to each other live on one thread.
#pragma once

#include <cxxabi.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdlib>

#include "simulator/sanitizers.h"
#include "simulator/stack.h"

namespace ddproof::sim {

class Context {
 public:
  // The code that runs already, on the thread's own stack.
  Context() = default;
  // `entry(argument)` starts at the first switch to it. The stack stays the caller's.
  Context(Stack stack, void (*entry)(void*), void* argument);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Where this thread's C++ runtime keeps its exceptions. Looked up once per run, because finding a
  // thread's own memory costs as much as the rest of a switch.
  using Exceptions = abi::__cxa_eh_globals;
  static Exceptions* exceptions_of_this_thread() { return abi::__cxa_get_globals(); }

  // Runs `to` until something switches back. Requires: this one runs, and `to` is another.
  // In the header, because returns after a switch are always predicted wrong: the fewer the better.
  void switch_to(Context& to, Exceptions* exceptions) {
    exchange_exceptions(to, exceptions);
    side_.leave(to.side_, false);
    Handover handover{this, &to};
    arrive(boost::context::detail::jump_fcontext(to.saved_, &handover));
  }

  // As switch_to(); this one never runs again.
  [[noreturn]] void finish(Context& to, Exceptions* exceptions) {
    exchange_exceptions(to, exceptions);
    side_.leave(to.side_, true);
    Handover handover{this, &to};
    boost::context::detail::jump_fcontext(to.saved_, &handover);
    std::abort();
  }

  // Brings into the cache what a switch to it will touch. Requires: it does not run.
  void prefetch() const {
    constexpr std::size_t kLine = 64, kLines = 4;  // the registers, and the frames above them
    const auto* place = static_cast<const std::byte*>(saved_);
    for (std::size_t line = 0; line < kLines; ++line) __builtin_prefetch(place + line * kLine);
  }

  // How many exceptions are in flight in it. Requires: it does not run.
  unsigned uncaught_exceptions() const { return exceptions_.uncaught; }

 private:
  // The layout of __cxa_eh_globals (Itanium C++ ABI, exception handling, 2.2.2).
  struct ExceptionGlobals {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };

  // What a switch passes to the other side; it lies on the stack of `from`.
  struct Handover {
    Context* from;
    Context* to;
  };

  void exchange_exceptions(Context& to, Exceptions* exceptions) {
    auto* globals = reinterpret_cast<ExceptionGlobals*>(exceptions);
    exceptions_ = *globals;
    *globals = to.exceptions_;
  }

  void arrive(boost::context::detail::transfer_t transfer) {
    Context* from = static_cast<Handover*>(transfer.data)->from;
    from->saved_ = transfer.fctx;
    side_.enter(from->side_);
  }

  static void start(boost::context::detail::transfer_t transfer);

  boost::context::detail::fcontext_t saved_ = nullptr;
  ExceptionGlobals exceptions_;
  [[no_unique_address]] SanitizerSide side_;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace ddproof::sim
