// What the other ranks of a gloo world say when one is killed, without a launcher that would end
// them. A rank that never notices would wait for half an hour, so ctest's timeout ends it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/launched.h"

namespace ddproof {
namespace {

constexpr int kWorldSize = 4;

// A free port that nobody is given by chance while this lives. The rank that is told it may listen.
class ReservedPort {
 public:
  ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* general = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(::bind(socket_, general, size), 0);
    EXPECT_EQ(::getsockname(socket_, general, &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { ::close(socket_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  std::string number() const { return std::to_string(number_); }

 private:
  int socket_;
  int number_ = 0;
};

// Four ranks of `doomed_rank` with these arguments; rank 0 hosts the store.
struct World {
  explicit World(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {DDPROOF_DOOMED_RANK};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::string size = std::to_string(kWorldSize);
    for (int rank = 0; rank < kWorldSize; ++rank) {
      const std::string number = std::to_string(rank);
      ranks.push_back(std::make_unique<Launched>(
          command, LaunchedOptions{.environment = {"RANK=" + number, "LOCAL_RANK=" + number,
                                                   "WORLD_SIZE=" + size, "LOCAL_WORLD_SIZE=" + size,
                                                   "MASTER_ADDR=127.0.0.1",
                                                   "MASTER_PORT=" + port.number()}}));
    }
  }
  ReservedPort port;
  std::vector<std::unique_ptr<Launched>> ranks;
};

// The victim was killed, and every other rank ended with an error that says so.
void expect_named(World& world, int victim, const std::string& how) {
  for (int rank = 0; rank < kWorldSize; ++rank) {
    Launched& process = *world.ranks[static_cast<std::size_t>(rank)];
    const int status = process.wait();
    if (rank == victim) {
      EXPECT_EQ(status, 128 + SIGKILL);
      continue;
    }
    EXPECT_EQ(status, 1) << process.err();
    EXPECT_NE(process.out().find("peer lost: rank " + std::to_string(rank) + "/4 [gloo] "),
              std::string::npos)
        << process.out();
    EXPECT_NE(process.out().find(": rank " + std::to_string(victim) + " is lost (" + how + "); "),
              std::string::npos)
        << process.out();
  }
}

constexpr const char* kDied = "its process died";

TEST(RankLoss, IsNamedByEveryRankInTheMiddleOfAnAllReduce) {
  for (const int addition : {1, 2, 7, 12, 23, 31}) {
    const int victim = 1 + addition % 3;
    World world({std::to_string(victim), "sums", std::to_string(addition)});
    SCOPED_TRACE("rank " + std::to_string(victim) + " dies at addition " +
                 std::to_string(addition));
    expect_named(world, victim, kDied);
  }
}

TEST(RankLoss, IsNamedByTheSenderOfAHalfSentMessage) {
  for (const int victim : {1, 2}) {
    World world({std::to_string(victim), "transfer"});
    expect_named(world, victim, kDied);
  }
}

TEST(RankLoss, OfTheRankThatHostsTheStoreIsNamed) {
  for (const char* addition : {"1", "9"}) {
    World world({"0", "sums", addition});
    expect_named(world, 0, "the store that it hosts does not answer");
  }
}

TEST(RankLoss, IsNamedWhateverTheVictimDoes) {
  World world({"2", "endless"});
  world.ranks[2]->read_out_until("ready");
  world.ranks[2]->signal(SIGKILL);
  expect_named(world, 2, kDied);
}

}  // namespace
}  // namespace ddproof
