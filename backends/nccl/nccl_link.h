// What lies under an NcclProcessGroup: this rank's place among the group's ranks at the store, its
// device, and the communicator between them.
//
// Invariant: when a rank of the group dies, or its ranks agree on a verdict, every wait of this
// rank ends (LossWatch closes the link), whatever NCCL notices by itself. Threads: launch(),
// monitored_barrier() and the destructor from one task at a time; the others from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/membership/finding.h"
#include "backends/membership/loss_watch.h"
#include "backends/membership/store_group.h"
#include "backends/nccl/launch.h"

namespace ddproof::nccl {

// What all links of one rank share.
struct NcclWorld : StoreWorld {
  int device = 0;
  std::shared_ptr<PinnedPool> pinned;
};

class NcclLink {
 public:
  static constexpr std::uint64_t kStays = ~std::uint64_t{0};

  // Waits for all ranks and connects them. Throws JoinError as meet() does, and when connecting
  // fails: the ranks say the same. Throws ConfigError, on all ranks, when two of them have one
  // device.
  static std::unique_ptr<NcclLink> connect(const NcclWorld& world, const StoreGroup& group,
                                           Duration timeout);
  // Leaves: in peace when nothing failed, else at once.
  ~NcclLink();

  const StoreGroup& group() const { return group_; }
  const NcclWorld& world() const { return world_; }

  // Puts the calls, of one coalesce(), into the device's queues. They must not outlive the link.
  std::unique_ptr<Launch> launch(std::span<const Call* const> calls);
  // Returns when all have come.
  void monitored_barrier(const Call& call);
  // What the exception means that is being handled, and one of the above or a Launch has thrown:
  // the same on every live rank. The link is closed then. Throws CommError that are not its own: of
  // the store, or the simulator's verdict.
  Finding explain_failure(Duration timeout);
  // Ends what the device runs of this group, and would else run for ever: the communicator is
  // aborted. Idempotent.
  void end_on_device() noexcept;

  // Ends this rank's waits, now and later. Never blocks, never throws.
  void close() noexcept { closed_ = true; }
  // Tells the peers. Blocks until the store has answered, at most half a second. Never throws.
  void publish(const Finding& finding);

 private:
  NcclLink(const NcclWorld& world, const StoreGroup& group);
  void make_communicator(Duration timeout);
  void note_left(int rank);
  // Whether somebody has left without making the first `collectives`, or is one of `peers` and has
  // left.
  bool is_hopeless(std::uint64_t collectives, const std::vector<int>& peers) const;
  Finding find_out(Duration timeout);
  Finding agree_on(const Finding& mine);
  std::optional<Finding> unequal_ids();

  NcclWorld world_;
  StoreGroup group_;
  std::atomic<bool> closed_ = false;
  std::unique_ptr<Monitor> failing_;  // guards found_: one task finds out, others wait for it
  std::optional<Finding> found_;
  std::uint64_t monitored_barriers_ = 0;
  std::uint64_t collectives_ = 0;  // begun, the same on all ranks
  // How many a rank had made when it left in peace; kStays for those who have not.
  std::vector<std::atomic<std::uint64_t>> made_by_leavers_;
  std::optional<DeviceSide> device_;
  std::unique_ptr<LossWatch> watch_;  // after what its task uses
};

}  // namespace ddproof::nccl
