// Learns from the store, without polling, that a group has failed: a rank of it is lost, its ranks
// agreed on a verdict, or the store itself is gone. When a rank of the group asks, it says where
// this rank is.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"
#include "backends/membership/store_group.h"

namespace ddproof {

// How long after the failure: a call that can still end by itself, since the lost rank had done its
// part, shall do so.
inline constexpr Duration kLossGrace = std::chrono::milliseconds(100);

// Calls `on_loss` at most once, and before it `on_left` at most once for each rank that leaves in
// peace, from a task of its own.
class LossWatch {
 public:
  // Throws what Store::watch() and Runtime::spawn() throw. `world` and `group` must outlive this.
  // Without `on_left` nobody looks for ranks that leave.
  LossWatch(const StoreWorld& world, const StoreGroup& group, std::function<void()> on_loss,
            std::function<void(int rank)> on_left = {});
  // Afterwards neither is called. Needs no answer of the store.
  ~LossWatch();
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;

 private:
  void run();
  // False: the group has failed, or this watch is over.
  bool await_news();
  // Each is true when there was such news.
  bool answer();
  bool tell_who_left();
  std::vector<std::string> keys() const;
  // False when the watch is over before.
  bool let_calls_end();

  const StoreWorld& world_;
  const StoreGroup& group_;
  std::function<void()> on_loss_;
  std::function<void(int)> on_left_;
  bool answers_;                      // has not been asked yet
  std::set<int> staying_;             // ranks that have not left; empty without on_left
  std::unique_ptr<Monitor> monitor_;  // guards keys_ and over_
  std::unique_ptr<KeyWatch> keys_;
  bool over_ = false;
  std::unique_ptr<Task> task_;
};

enum class Awaited { kThere, kFailed, kTimeout };

// Waits for `key`, but no longer than until the group has failed, as LossWatch learns it.
Awaited await_key(const StoreWorld& world, const StoreGroup& group, const std::string& key,
                  Duration timeout);

}  // namespace ddproof
