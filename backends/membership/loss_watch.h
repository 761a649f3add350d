// Learns from the store, without polling, that a group has failed: a rank of it is lost, its ranks
// agreed on a verdict, or the store itself is gone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/api/runtime.h"
#include "backends/api/store.h"
#include "backends/membership/store_group.h"

namespace ddproof {

// How long after the failure: a call that can still end by itself, since the lost rank had done its
// part, shall do so.
inline constexpr Duration kLossGrace = std::chrono::milliseconds(100);

// Calls `on_loss` at most once, from a task of its own.
class LossWatch {
 public:
  // Throws what Store::watch() and Runtime::spawn() throw. `world`'s runtime and store must outlive
  // this.
  LossWatch(const StoreWorld& world, const StoreGroup& group, std::function<void()> on_loss);
  // Afterwards on_loss is not called. Needs no answer of the store.
  ~LossWatch();
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;

 private:
  void run();

  Runtime& runtime_;
  std::function<void()> on_loss_;
  std::unique_ptr<KeyWatch> keys_;
  std::unique_ptr<Monitor> monitor_;  // guards over_
  bool over_ = false;
  std::unique_ptr<Task> task_;
};

enum class Awaited { kThere, kFailed, kTimeout };

// Waits for `key`, but no longer than until the group has failed, as LossWatch learns it.
Awaited await_key(const StoreWorld& world, const StoreGroup& group, const std::string& key,
                  Duration timeout);

}  // namespace ddproof
