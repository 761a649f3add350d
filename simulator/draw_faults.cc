#include "simulator/draw_faults.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "simulator/random.h"

namespace ddproof::sim {
namespace {

class Drawer {
 public:
  Drawer(std::uint64_t seed, const FaultShape& shape) : random_(mix64(seed)), shape_(shape) {}

  FaultPlan draw() {
    FaultPlan plan;
    for (int kind = 0; kind < kFaultKindCount; ++kind) {
      const bool is_active = up_to(kDrawnKindsOneIn) == 1;
      const std::uint64_t count = up_to(kDrawnFaultsMax);
      if (!is_active || !is_possible(static_cast<FaultKind>(kind))) continue;
      for (std::uint64_t i = 0; i < count; ++i) {
        plan.push_back(draw_one(static_cast<FaultKind>(kind)));
      }
    }
    return plan;
  }

 private:
  // 1, 2, ..., max.
  std::uint64_t up_to(std::uint64_t max) { return 1 + below(random_.next(), max); }
  Time time_up_to(Time max) { return static_cast<Time>(up_to(static_cast<std::uint64_t>(max))); }
  int rank() { return static_cast<int>(up_to(static_cast<std::uint64_t>(shape_.ranks))) - 1; }

  bool is_possible(FaultKind kind) const {
    switch (kind) {
      case FaultKind::kCrash:
      case FaultKind::kHang:
      case FaultKind::kSlow:
      case FaultKind::kClockJump: return true;
      case FaultKind::kShortWrite:
      case FaultKind::kFullDisk:
      case FaultKind::kFailedSync:
      case FaultKind::kPowerCut: return !ranks_that_make(kind).empty();
      default: return shape_.ranks > 1;
    }
  }

  Fault draw_one(FaultKind kind) {
    Fault fault{.kind = kind, .rank = rank()};
    switch (kind) {
      case FaultKind::kCrash:
      case FaultKind::kHang: fault.number = up_to(shape_.operations); break;
      case FaultKind::kSlow:
        fault.amount = up_to(10);
        fault.time = time_up_to(shape_.duration) - 1;
        break;
      case FaultKind::kPartition: draw_partition(fault); break;
      case FaultKind::kShortWrite:
      case FaultKind::kFullDisk:
      case FaultKind::kFailedSync:
      case FaultKind::kPowerCut: draw_disk_fault(fault); break;
      case FaultKind::kClockJump:
        fault.start = time_up_to(shape_.duration) - 1;
        fault.time = time_up_to(2 * kClockJumpMax) - kClockJumpMax;
        break;
      default: draw_message_fault(fault); break;
    }
    return fault;
  }

  // How many calls of a rank such a fault can strike.
  static std::uint64_t calls_for(FaultKind kind, const DiskCalls& calls) {
    if (kind == FaultKind::kPowerCut) return calls.changes;
    return kind == FaultKind::kFailedSync ? calls.syncs : calls.writes;
  }

  std::vector<int> ranks_that_make(FaultKind kind) const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < shape_.disk.size(); ++rank) {
      if (calls_for(kind, shape_.disk[rank]) > 0) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  void draw_disk_fault(Fault& fault) {
    const std::vector<int> ranks = ranks_that_make(fault.kind);
    fault.rank = ranks[up_to(ranks.size()) - 1];
    fault.number = up_to(calls_for(fault.kind, shape_.disk[static_cast<std::size_t>(fault.rank)]));
    if (fault.kind == FaultKind::kPowerCut) fault.amount = up_to(1'000'000);
    if (fault.kind == FaultKind::kShortWrite) fault.amount = up_to(shape_.message_bytes) - 1;
  }

  void draw_message_fault(Fault& fault) {
    fault.peer = (fault.rank + static_cast<int>(up_to(shape_.ranks - 1))) % shape_.ranks;
    fault.number = up_to(shape_.messages);
    if (fault.kind == FaultKind::kDelay || fault.kind == FaultKind::kReorder) {
      fault.time = time_up_to(shape_.duration);
    } else if (fault.kind == FaultKind::kTruncate) {
      // Short lengths as often as long ones: most messages are short, and none gets longer.
      const std::uint64_t bits = up_to(std::bit_width(shape_.message_bytes));
      fault.amount = up_to(std::min(std::uint64_t{1} << bits, shape_.message_bytes)) - 1;
    } else if (fault.kind == FaultKind::kFlip) {
      fault.amount = up_to(8 * shape_.message_bytes) - 1;
    }
  }

  // Each rank is on either side; the drawn one and its neighbour are on different sides.
  void draw_partition(Fault& fault) {
    const int outside = (fault.rank + 1) % shape_.ranks;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const bool heads = up_to(2) == 1;
      if (rank == fault.rank || (rank != outside && heads)) fault.ranks.push_back(rank);
    }
    fault.rank = 0;
    fault.start = time_up_to(shape_.duration) - 1;
    const Time length = time_up_to(shape_.duration);
    if (up_to(4) > 1) fault.end = add_time(fault.start, length);
  }

  static constexpr Time kClockJumpMax = 3'600'000'000'000;

  SplitMix64 random_;
  const FaultShape& shape_;
};

}  // namespace

FaultPlan draw_faults(std::uint64_t seed, const FaultShape& shape) {
  return Drawer(seed, shape).draw();
}

}  // namespace ddproof::sim
