// A store that calls a hook before each call: to count them, to hold them back, to refuse them.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/support/forwarding_store.h"

namespace ddproof {

class HookedStore final : public ForwardingStore {
 public:
  // Told by when the store has to answer; kForever: any time.
  using Hook = std::function<void(TimePoint deadline)>;

  // `inner` must outlive this.
  HookedStore(Store& inner, Hook hook) : HookedStore(nullptr, inner, std::move(hook), kForever) {}

  // Asks nothing of the store yet.
  std::unique_ptr<Store> answering_by(TimePoint deadline) override {
    std::unique_ptr<Store> hurried = ForwardingStore::inner().answering_by(deadline);
    Store& store = *hurried;
    return std::unique_ptr<Store>(new HookedStore(std::move(hurried), store, hook_, deadline));
  }

 private:
  HookedStore(std::unique_ptr<Store> owned, Store& inner, Hook hook, TimePoint deadline)
      : ForwardingStore(inner),
        owned_(std::move(owned)),
        hook_(std::move(hook)),
        deadline_(deadline) {}

  Store& inner() override {
    hook_(deadline_);
    return ForwardingStore::inner();
  }

  std::unique_ptr<Store> owned_;
  Hook hook_;
  TimePoint deadline_;
};

}  // namespace ddproof
