#include "backends/membership/loss_watch.h"

#include <exception>
#include <utility>
#include <vector>

#include "backends/membership/whereabouts.h"

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
                     std::function<void()> on_loss, std::function<void(int)> on_left)
    : world_(world),
      group_(group),
      on_loss_(std::move(on_loss)),
      on_left_(std::move(on_left)),
      answers_(world.whereabouts != nullptr),
      monitor_(world.runtime.make_monitor()) {
  for (int rank = 0; on_left_ && rank < group_.size(); ++rank) staying_.insert(rank);
  keys_ = world_.store.watch(keys());
  task_ = world_.runtime.spawn(world_.backend + " watch", [this] { run(); });
}

LossWatch::~LossWatch() {
  {
    MonitorLock lock(*monitor_);
    over_ = true;
    keys_->end();
    monitor_->notify_all();
  }
  task_->join();
}

std::vector<std::string> LossWatch::keys() const {
  std::vector<std::string> keys = failure_keys(world_, group_);
  for (const int rank : staying_) keys.push_back(group_.key("left", rank));
  if (answers_) keys.push_back(group_.asked_key());
  return keys;
}

bool LossWatch::let_calls_end() {
  const TimePoint deadline = world_.runtime.now() + kLossGrace;
  MonitorLock lock(*monitor_);
  while (!over_ && monitor_->wait(deadline, {"calls to end after a loss", CallSite{}, {}})) {
  }
  return !over_;
}

bool LossWatch::answer() {
  if (!answers_ || !world_.store.check({group_.asked_key()})) return false;
  world_.store.set(group_.key("at", group_.rank), world_.whereabouts->told());
  answers_ = false;
  return true;
}

bool LossWatch::tell_who_left() {
  std::vector<int> left;
  for (const int rank : staying_) {
    if (world_.store.check({group_.key("left", rank)})) left.push_back(rank);
  }
  if (left.empty() || !let_calls_end()) return false;
  for (const int rank : left) {
    on_left_(rank);
    staying_.erase(rank);
  }
  return true;
}

bool LossWatch::await_news() {
  if (keys_->wait(kForever) == KeyWatch::Outcome::kEnded) return false;
  if (world_.store.check({group_.verdict_key()})) return false;
  if (!answer() && !tell_who_left()) return false;
  auto next = world_.store.watch(keys());
  MonitorLock lock(*monitor_);
  keys_.swap(next);
  return !over_;
}

void LossWatch::run() {
  try {
    while (await_news()) {
    }
  } catch (const std::exception&) {
    // The store is gone, perhaps with the rank that hosts it: nobody would learn of a loss.
  }
  if (let_calls_end()) on_loss_();
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
