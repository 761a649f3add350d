// Worlds that cannot come about: what each rank is told, and when.
#include <gtest/gtest.h>
#include <nccl.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/nccl/communicator.h"
#include "backends/nccl/nccl_backend.h"
#include "tests/nccl/failed_ranks.h"
#include "tests/support/forwarding_store.h"

namespace ddproof {
namespace {

using standin::Script;

void do_nothing(RankContext&) {}

// The text of the ConfigError or ResourceError that a rank threw; else what it did.
std::string rank_refusal(const sim::RankReport& rank) {
  try {
    if (rank.error) std::rethrow_exception(rank.error);
  } catch (const CommError& error) {
    return std::string("CommError: ") + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclCreation, ADeviceThatDoesNotExistIsRefusedByName) {
  StandinWorldOptions options = world_of(3);
  options.machine.devices = 2;
  const StandinReport report = run_standin_world(options, do_nothing);
  const std::string cause =
      "backend nccl: LOCAL_RANK is 2, but there are 2 CUDA devices here; start at most one rank "
      "per device, and see CUDA_VISIBLE_DEVICES";
  EXPECT_EQ(rank_refusal(report.run.ranks[2]), cause);
  for (const int rank : {0, 1}) {
    EXPECT_NE(rank_refusal(report.run.ranks[rank]).find("rank 2 cannot connect (" + cause + ")"),
              std::string::npos);
  }
  EXPECT_EQ(report.complaints, Lines{});
  EXPECT_LE(Duration(report.run.virtual_time), kTimeout);
}

// As when a launcher gives every rank the same LOCAL_RANK.
TEST(NcclCreation, ADeviceThatTwoRanksHaveIsRefusedOnAll) {
  StandinWorldOptions options = world_of(3);
  options.local_ranks = {0, 1, 1};
  const StandinReport report = run_standin_world(options, do_nothing);
  for (const sim::RankReport& rank : report.run.ranks) {
    EXPECT_EQ(rank_refusal(rank),
              "backend nccl: ranks 1, 2 use one device (stand-in "
              "00010000000000000000000000000000); give every rank of a machine a LOCAL_RANK and so "
              "a device of its own");
  }
  EXPECT_EQ(report.complaints, Lines{});
}

TEST(NcclCreation, DevicesOfTwoHostsAreNotTheSame) {
  StandinWorldOptions options = world_of(4);
  options.machine.ranks_per_host = 2;
  options.world.placement = place_in_blocks(4, 2);
  options.machine.devices = 2;
  const StandinReport report =
      run_standin_world(options, [](RankContext& rank) { rank.group.barrier()->wait(); });
  for (const sim::RankReport& rank : report.run.ranks) EXPECT_EQ(rank_refusal(rank), "no error");
  EXPECT_EQ(report.complaints, Lines{});
}

// Row P22 of the known pitfalls: two nodes of one device each, and a barrier as the first call.
// Rank 1 has device 0 there; a device guessed from its rank would not exist.
TEST(NcclCreation, TheDeviceIsThatOfTheLocalRankNotOfTheRank) {
  StandinWorldOptions options = world_of(2);
  options.machine.ranks_per_host = options.machine.devices = 1;
  options.world.placement = {0, 1};
  const StandinReport report =
      run_standin_world(options, [](RankContext& rank) { rank.group.barrier()->wait(); });
  for (const sim::RankReport& rank : report.run.ranks) EXPECT_EQ(rank_refusal(rank), "no error");
  EXPECT_EQ(report.complaints, Lines{});
}

TEST(NcclCreation, ARankThatDoesNotComeIsNamed) {
  StandinWorldOptions options = world_of(4);
  options.absent = {2};
  const StandinReport report = run_standin_world(options, do_nothing);
  for (const int rank : {0, 1, 3}) {
    EXPECT_NE(rank_refusal(report.run.ranks[rank])
                  .find("[nccl] join: rank 2 did not come within 5000 ms; start every rank"),
              std::string::npos)
        << rank_refusal(report.run.ranks[rank]);
  }
  EXPECT_EQ(report.complaints, Lines{});
  EXPECT_LE(Duration(report.run.virtual_time), kBound);
}

// It comes to the store, and then never into NCCL.
TEST(NcclCreation, ARankThatHangsWhileConnectingIsATimeoutForAll) {
  const Script script{1, "ncclCommInitRankConfig", 1, Script::Effect::kHang, 0};
  expect_all(run_standin_world(world_of(4, {script}), do_nothing), CommErrorKind::kTimeout, {},
             "cannot make the communicator: no progress for 5000 ms; every rank is waiting");
}

TEST(NcclCreation, AnErrorWhileConnectingEndsAllOfThem) {
  for (const char* call : {"ncclCommInitRankConfig", "ncclGetUniqueId"}) {
    const Script script{0, call, 1, Script::Effect::kReturn, ncclSystemError};
    expect_all(run_standin_world(world_of(4, {script}), do_nothing), CommErrorKind::kPeerLost, {0},
               "rank 0 is lost (");
  }
}

// Rank 2 reads another unique id than the one that rank 0 wrote.
class OtherId final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::string get(const std::string& key, Duration timeout) override {
    std::string value = ForwardingStore::get(key, timeout);
    if (key.ends_with("/id")) value[0] = value[0] == '0' ? '1' : '0';
    return value;
  }
};

TEST(NcclCreation, AMismatchedUniqueIdIsNamedOnAll) {
  StandinWorldOptions options = world_of(4);
  options.wrap_store = [](int rank, Store& store) -> std::unique_ptr<Store> {
    if (rank != 2) return nullptr;
    return std::make_unique<OtherId>(store);
  };
  expect_all(run_standin_world(options, do_nothing), CommErrorKind::kMismatch, {2},
             "rank 2 got another unique id than rank 0");
}

TEST(NcclCreation, AnNcclThatIsTooOldIsRefused) {
  StandinWorldOptions options = world_of(2);
  options.machine.nccl_version = NCCL_VERSION(2, 14, 3);
  const StandinReport report = run_standin_world(options, do_nothing);
  for (const sim::RankReport& rank : report.run.ranks) {
    EXPECT_EQ(rank_refusal(rank), "NCCL is 2.14.3, needed is " +
                                      nccl::nccl_version_text(nccl::kNcclVersionNeeded) +
                                      " or newer; install a newer NCCL");
  }
}

TEST(NcclCreation, WhatIsMissingIsSaid) {
  const auto why = [](const standin::MachineOptions& machine) {
    std::string text;
    run_on_machine(1, machine, 1, [&](int) { text = why_no_nccl(); });
    return text;
  };
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.has_driver = false}),
            "cudaGetDeviceCount: CUDA driver version is insufficient for CUDA runtime version");
  EXPECT_EQ(why({.devices = 0}), "cudaGetDeviceCount: no CUDA-capable device is detected");
  EXPECT_TRUE(why({.nccl_version = 2708}).starts_with("NCCL is 2.7.8, needed is "));
}

TEST(NcclCreation, APartThatFailsLeavesTheGroupUsable) {
  // The second communicator that rank 1 makes.
  const Script script{1, "ncclCommInitRankConfig", 2, Script::Effect::kReturn, ncclSystemError};
  const StandinReport report = run_standin_world(world_of(4, {script}), [](RankContext& rank) {
    EXPECT_THROW(rank.group.split(0, 0), CommError);
    rank.group.barrier()->wait();
    const auto part = rank.group.split(rank.group.rank() % 2, 0);
    part->barrier()->wait();
    rank.group.barrier()->wait();
  });
  for (const sim::RankReport& rank : report.run.ranks) EXPECT_EQ(rank_refusal(rank), "no error");
  EXPECT_EQ(report.complaints, Lines{});
}

}  // namespace
}  // namespace ddproof
