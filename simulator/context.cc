#include "simulator/context.h"

#include "simulator/check.h"

namespace ddproof::sim {

Context::Context(Stack stack, void (*entry)(void*), void* argument)
    : saved_(boost::context::detail::make_fcontext(stack.top(), kStackBytes, &Context::start)),
      entry_(entry),
      argument_(argument) {
  side_.set_bounds(stack.bottom, kStackBytes);
}

void Context::start(boost::context::detail::transfer_t transfer) {
  Context* self = static_cast<Handover*>(transfer.data)->to;
  self->arrive(transfer);
  self->entry_(self->argument_);
  SIM_CHECK(!"the entry of a context must finish()");
}

}  // namespace ddproof::sim
