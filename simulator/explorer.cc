#include "simulator/explorer.h"

#include <algorithm>
#include <utility>

#include "simulator/check.h"
#include "simulator/fiber.h"

namespace ddproof::sim {

void Explorer::begin_run(std::uint64_t seed) {
  SeededScheduler::begin_run(seed);
  depth_ = 0;
  round_ = 0;
  chosen_ = false;
  is_running_ = false;
  is_over_ = false;
  is_redundant_ = false;
}

std::size_t Explorer::next(std::span<const Runnable> runnable) {
  if (is_over_) return 0;
  if (depth_ >= replayed_) {
    std::vector<std::uint64_t> fibers;
    for (const Runnable& entry : runnable) fibers.push_back(entry.id);
    add_node(std::move(fibers));
    if (is_over_) return 0;
  }
  const auto place = std::ranges::find(runnable, nodes_[depth_].chosen, &Runnable::id);
  if (place == runnable.end()) {
    end_early();
    return 0;
  }
  chosen_ = true;
  return static_cast<std::size_t>(place - runnable.begin());
}

void Explorer::on_step(const Fiber& fiber) {
  is_running_ = true;
  if (!chosen_ && !is_over_ && depth_ >= replayed_) add_node({fiber.id()});
  if (is_over_) return;
  if (nodes_[depth_].chosen != fiber.id()) return end_early();
  chosen_ = false;
  if (depth_ >= steps_.size()) steps_.emplace_back();
  Step& step = steps_[depth_++];
  step.fiber = fiber.id();
  step.rank = fiber.rank();
  step.round = round_;
  on_touch(fiber.key(), Access::kWrite);
}

void Explorer::on_touch(ObjectKey object, Access access) {
  // Steps that are only replayed are known, but for the last, which is new.
  if (!is_running_ || is_over_ || depth_ < replayed_) return;
  Step& step = steps_[depth_ - 1];
  if (object == kEverything) step.touches_everything = true;
  step.objects |= std::uint64_t{1} << (mix64(object) % 64);
  const Touch touch{object, access};
  const auto place = std::ranges::lower_bound(step.touches, touch);
  if (place == step.touches.end() || *place != touch) step.touches.insert(place, touch);
}

void Explorer::on_ready(const Fiber& fiber) {
  if (!is_running_ || is_over_ || depth_ < replayed_) return;
  steps_[depth_ - 1].readied.push_back(fiber.id());
}

void Explorer::on_all_wait() {
  is_running_ = false;
  round_ = depth_;
}

void Explorer::on_verdict() { is_over_ = true; }

void Explorer::end_early() {
  gap_ = "the program does not repeat itself: the same choices led to another fiber";
  is_over_ = true;
  repeats_ = false;
}

void Explorer::on_uncovered(std::string_view what) { gap_ = what; }

bool Explorer::conflict(const Step& a, const Step& b) {
  if (a.rank == b.rank || a.touches_everything || b.touches_everything) return true;
  if ((a.objects & b.objects) == 0) return false;
  auto x = a.touches.begin(), y = b.touches.begin();
  while (x != a.touches.end() && y != b.touches.end()) {
    if (x->object < y->object) {
      ++x;
    } else if (y->object < x->object) {
      ++y;
    } else {
      // All accesses of one object: commuting only when each side has the same single kind.
      const ObjectKey object = x->object;
      const Access kind = x->access;
      if (kind == Access::kWrite) return true;
      for (; x != a.touches.end() && x->object == object; ++x) {
        if (x->access != kind) return true;
      }
      for (; y != b.touches.end() && y->object == object; ++y) {
        if (y->access != kind) return true;
      }
    }
  }
  return false;
}

bool Explorer::holds(const std::vector<Step>& steps, std::uint64_t fiber) {
  return std::ranges::find(steps, fiber, &Step::fiber) != steps.end();
}

void Explorer::add_node(std::vector<std::uint64_t> runnable) {
  Node node;
  if (depth_ > round_) {
    const Node& last = nodes_[depth_ - 1];
    const Step& step = steps_[depth_ - 1];
    for (const auto* sleepers : {&last.asleep, &last.done}) {
      for (const Step& sleeper : *sleepers) {
        if (!conflict(sleeper, step)) node.asleep.push_back(sleeper);
      }
    }
  }
  const auto awake = std::ranges::find_if(
      runnable, [&](std::uint64_t fiber) { return !holds(node.asleep, fiber); });
  if (awake == runnable.end()) {
    is_over_ = true;
    is_redundant_ = true;
    return;
  }
  node.chosen = *awake;
  node.to_try.push_back(node.chosen);
  node.runnable = std::move(runnable);
  nodes_.push_back(std::move(node));
  ++states_;
}

bool Explorer::advance() {
  ++(is_redundant_ ? redundant_ : traces_);
  if (!repeats_) return false;
  find_races();
  while (!nodes_.empty()) {
    Node& node = nodes_.back();
    node.done.push_back(std::move(steps_[nodes_.size() - 1]));
    for (const std::uint64_t fiber : node.to_try) {
      if (holds(node.done, fiber) || holds(node.asleep, fiber)) continue;
      node.chosen = fiber;
      replayed_ = nodes_.size();
      steps_.resize(replayed_ - 1);
      return true;
    }
    nodes_.pop_back();
  }
  replayed_ = 0;
  steps_.clear();
  return false;
}

void Explorer::find_races() {
  steps_.resize(nodes_.size());
  const std::size_t first_new = replayed_ == 0 ? 0 : replayed_ - 1;
  for (std::size_t later = first_new; later < steps_.size(); ++later) order_step(later);
}

bool Explorer::happens_before(std::size_t earlier, std::size_t later) const {
  return steps_[later].before[earlier - steps_[later].round];
}

// Finds what must precede a step, and the races that it ends.
void Explorer::order_step(std::size_t later) {
  Step& step = steps_[later];
  step.before.assign(later - step.round, false);
  bool is_readied = false;  // whoever made the fiber runnable is known
  std::vector<std::size_t> races;
  for (std::size_t i = later; i-- > step.round;) {
    const Step& earlier = steps_[i];
    const bool same_fiber = earlier.fiber == step.fiber;
    const bool readies =
        !is_readied && std::ranges::find(earlier.readied, step.fiber) != earlier.readied.end();
    is_readied = is_readied || readies || same_fiber;
    if (step.before[i - step.round]) continue;
    if (!same_fiber && !readies && !conflict(earlier, step)) continue;
    if (!same_fiber && !readies) races.push_back(i);
    step.before[i - step.round] = true;
    for (std::size_t k = 0; k < earlier.before.size(); ++k) {
      if (earlier.before[k]) step.before[k] = true;
    }
  }
  for (const std::size_t i : races) reverse(i, later);
}

// Sees to it that a run is made in which the later of two racing steps comes before the earlier.
void Explorer::reverse(std::size_t earlier, std::size_t later) {
  std::vector<std::size_t> path;  // what can come before `earlier`, and leads to `later`
  for (std::size_t k = earlier + 1; k < later; ++k) {
    if (!happens_before(earlier, k)) path.push_back(k);
  }
  path.push_back(later);
  Node& node = nodes_[earlier];
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_first = std::none_of(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](std::size_t k) { return happens_before(k, path[i]); });
    if (!is_first) continue;
    const std::uint64_t fiber = steps_[path[i]].fiber;
    if (holds(node.done, fiber) || holds(node.asleep, fiber)) return;
    if (std::ranges::find(node.to_try, fiber) != node.to_try.end()) return;
    SIM_CHECK(std::ranges::find(node.runnable, fiber) != node.runnable.end());
    if (first == 0 || path[i] == later) first = fiber;
  }
  node.to_try.push_back(first);
}

}  // namespace ddproof::sim
