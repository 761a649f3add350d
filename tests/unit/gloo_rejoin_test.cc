// What a rank does on one connection to the store after a group of it has failed.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/local/os_runtime.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"

namespace ddproof {
namespace {

class GlooRejoin : public ::testing::Test {
 protected:
  std::unique_ptr<ProcessGroup> join(int rank, Runtime& runtime, Store& store) {
    return backend_.join({.rank = rank, .world_size = 2, .timeout = std::chrono::hours(1)}, runtime,
                         store);
  }

  OsRuntime main_;
  TcpStoreServer server_{main_, {.host = "127.0.0.1"}};
  GlooBackend backend_{ProcessHost{}};
};

// Only the watch tells rank 0 of the loss, so it has found its key when the group is destroyed.
TEST_F(GlooRejoin, AWorldIsMadeAgainOnTheSameStoreAfterALoss) {
  const auto rank = [this](int number) {
    OsRuntime runtime;
    TcpStore store(runtime, {.host = "127.0.0.1", .port = server_.port()});
    auto group = join(number, runtime, store);
    if (number == 0) {
      store.set("lost/1/1", "its process died");
      EXPECT_THROW(group->barrier({}, {"t.cc", 3, ""})->wait(), CommError);
      store.set("noticed", "");
    } else {
      store.wait({"noticed"}, kForever);
    }
    group.reset();
    group = join(number, runtime, store);
    std::vector<int> data{number + 1};
    group->all_reduce(Buffer::of(std::span<int>(data)))->wait();
    EXPECT_EQ(data[0], 3);
  };
  const auto other = main_.spawn("rank 1", [&] { rank(1); });
  rank(0);
  other->join();
}

}  // namespace
}  // namespace ddproof
