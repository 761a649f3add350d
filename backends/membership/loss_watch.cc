#include "backends/membership/loss_watch.h"

#include <exception>
#include <utility>
#include <vector>

namespace ddproof {
namespace {

// One of them exists when the group has failed.
std::vector<std::string> failure_keys(const StoreWorld& world, const StoreGroup& group) {
  std::vector<std::string> keys{group.verdict_key()};
  for (int rank = 0; rank < group.size(); ++rank) keys.push_back(world.lost_key(group, rank));
  return keys;
}

}  // namespace

LossWatch::LossWatch(const StoreWorld& world, const StoreGroup& group,
                     std::function<void()> on_loss)
    : runtime_(world.runtime), on_loss_(std::move(on_loss)), monitor_(runtime_.make_monitor()) {
  keys_ = world.store.watch(failure_keys(world, group));
  task_ = runtime_.spawn(world.backend + " watch", [this] { run(); });
}

LossWatch::~LossWatch() {
  keys_->end();
  {
    MonitorLock lock(*monitor_);
    over_ = true;
    monitor_->notify_all();
  }
  task_->join();
}

void LossWatch::run() {
  try {
    if (keys_->wait(kForever) == KeyWatch::Outcome::kEnded) return;
  } catch (const std::exception&) {
    // The store is gone, perhaps with the rank that hosts it: nobody would learn of a loss.
  }
  {
    const TimePoint deadline = runtime_.now() + kLossGrace;
    MonitorLock lock(*monitor_);
    while (!over_ && monitor_->wait(deadline, {"calls to end after a loss", CallSite{}, {}})) {
    }
    if (over_) return;
  }
  on_loss_();
}

Awaited await_key(const StoreWorld& world, const StoreGroup& group, const std::string& key,
                  Duration timeout) {
  std::vector<std::string> keys = failure_keys(world, group);
  keys.push_back(key);
  if (world.store.watch(keys)->wait(timeout) == KeyWatch::Outcome::kTimeout) {
    return Awaited::kTimeout;
  }
  return world.store.check({key}) ? Awaited::kThere : Awaited::kFailed;
}

}  // namespace ddproof
