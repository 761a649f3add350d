// Who may be which rank: one process at a time.
#include "reference/launch/rendezvous.h"

#include <gtest/gtest.h>

#include <optional>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "tests/support/refusal.h"

namespace ddproof {
namespace {

class RendezvousClaim : public ::testing::Test {
 protected:
  LaunchEnvironment environment(int rank, int local_rank) const {
    return {.distributed = true,
            .rank = rank,
            .world_size = 4,
            .local_rank = local_rank,
            .master_addr = "127.0.0.1",
            .master_port = server_.port(),
            .launcher_hosts_store = true,
            .store_token = "of the job"};
  }

  std::string refusal(int rank, int local_rank) {
    try {
      Rendezvous rendezvous(second_, environment(rank, local_rank), std::chrono::hours(1));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  OsRuntime first_;
  OsRuntime second_;
  TcpStoreServer server_{first_, {.host = "127.0.0.1", .token = "of the job"}};
};

TEST_F(RendezvousClaim, ASecondProcessWithARankIsRefused) {
  Rendezvous rendezvous(first_, environment(3, 1), std::chrono::hours(1));
  EXPECT_EQ(refusal(3, 0),
            "RANK is 3 in two processes of one job at 127.0.0.1:" + std::to_string(server_.port()) +
                ": LOCAL_RANK is 0 here and 1 in the one that came first; give every "
                "process a RANK of its own");
  EXPECT_EQ(refusal(2, 0), "");
}

TEST_F(RendezvousClaim, ARankIsFreeAgainOnceItsProcessHasLeft) {
  for (int time = 0; time < 3; ++time) {
    Rendezvous rendezvous(first_, environment(3, 1), std::chrono::hours(1));
  }
  EXPECT_EQ(refusal(3, 0), "");
}

// The one who was refused does not free the rank when it goes.
TEST_F(RendezvousClaim, TheClaimOutlivesTheRefusedProcess) {
  Rendezvous rendezvous(first_, environment(3, 1), std::chrono::hours(1));
  EXPECT_NE(refusal(3, 0), "");
  EXPECT_NE(refusal(3, 0), "");
}

TEST_F(RendezvousClaim, WhoHasAnotherTokenCannotJoin) {
  LaunchEnvironment stranger = environment(3, 1);
  stranger.store_token = "of another job";
  EXPECT_EQ(
      refusal_of([&] { Rendezvous(second_, stranger, std::chrono::hours(1)); }),
      "store [tcp 127.0.0.1:" + std::to_string(server_.port()) +
          "]: the server has another token than this program; give all processes of a job the "
          "same one");
}

// What a restarted rank finds: its earlier process has died a moment ago, and the store learns it
// only now.
TEST_F(RendezvousClaim, ARankIsFreeAgainOnceTheStoreKnowsThatItsProcessDied) {
  TcpStore dying(first_, {.host = "127.0.0.1", .port = server_.port(), .token = "of the job"});
  dying.set("ranks/3/1", "77 1");
  const auto notice = first_.spawn("notice", [&] { dying.set("ranks/3/left/77", "it died"); });
  EXPECT_EQ(refusal(3, 0), "");
  notice->join();
}

}  // namespace
}  // namespace ddproof
