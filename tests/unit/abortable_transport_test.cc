// Waits on Gloo's buffers that another task ends: before, while and after they begin.
#include "backends/gloo/tcp/abortable_transport.h"

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "tests/unit/observed_device.h"

namespace ddproof {
namespace {

using gloo::transport::UnboundBuffer;

class AbortableTransport : public testing::Test {
 protected:
  std::unique_ptr<UnboundBuffer> make_buffer() { return context_->createUnboundBuffer(&byte_, 1); }

  // False when the wait returned, whatever it returned.
  static bool ends_with_io_exception(const std::function<void()>& wait) {
    try {
      wait();
    } catch (const gloo::IoException&) {
      return true;
    }
    return false;
  }
  // Nobody sends or receives here, so only an abort ends these.
  static bool wait_recv_is_ended(UnboundBuffer& buffer) {
    return ends_with_io_exception([&] { buffer.waitRecv(std::chrono::hours(1)); });
  }
  static bool wait_send_is_ended(UnboundBuffer& buffer) {
    return ends_with_io_exception([&] { buffer.waitSend(std::chrono::hours(1)); });
  }

  char byte_ = 0;
  OsRuntime runtime_;
  AbortableDevice device_{gloo::transport::tcp::CreateDevice({"127.0.0.1"}), runtime_};
  std::shared_ptr<gloo::transport::Context> context_ = device_.createContext(0, 2);
};

TEST_F(AbortableTransport, AnAbortEndsWaitsThatHaveBegun) {
  const auto observed = std::make_shared<ObservedDevice>(runtime_);
  AbortableDevice device(observed, runtime_);
  const auto context = device.createContext(0, 2);
  const auto received = context->createUnboundBuffer(&byte_, 1);
  const auto sent = context->createUnboundBuffer(&byte_, 1);
  bool recv_ended = false;
  bool send_ended = false;
  const auto receiver =
      runtime_.spawn("receiver", [&] { recv_ended = wait_recv_is_ended(*received); });
  const auto sender = runtime_.spawn("sender", [&] { send_ended = wait_send_is_ended(*sent); });
  observed->wait_for_waits(2);
  EXPECT_EQ(observed->closed(), 0);
  device.abort();
  receiver->join();
  sender->join();
  EXPECT_TRUE(recv_ended);
  EXPECT_TRUE(send_ended);
  EXPECT_EQ(observed->closed(), 1);
}

// The peer, which has no abort of its own, learns of it from the connection.
TEST_F(AbortableTransport, AnAbortClosesTheConnections) {
  const auto peer = gloo::transport::tcp::CreateDevice({"127.0.0.1"})->createContext(1, 2);
  auto& there = context_->createPair(1);
  auto& back = peer->createPair(0);
  const std::vector<char> here = there->address().bytes();
  const auto connecting = runtime_.spawn("peer", [&] { back->connect(here); });
  there->connect(back->address().bytes());
  connecting->join();
  const auto buffer = peer->createUnboundBuffer(&byte_, 1);
  buffer->recv(0, 1);
  device_.abort();
  EXPECT_TRUE(wait_recv_is_ended(*buffer));
}

TEST_F(AbortableTransport, AnAbortEndsWaitsThatBeginLater) {
  const auto early = make_buffer();
  device_.abort();
  device_.abort();
  const auto late = make_buffer();
  for (UnboundBuffer* buffer : {early.get(), late.get()}) {
    EXPECT_TRUE(wait_recv_is_ended(*buffer));
    EXPECT_TRUE(wait_recv_is_ended(*buffer)) << "the second time";
    EXPECT_TRUE(wait_send_is_ended(*buffer));
  }
}

TEST_F(AbortableTransport, AnAbortBeforeThereIsAContextIsKept) {
  AbortableDevice device(gloo::transport::tcp::CreateDevice({"127.0.0.1"}), runtime_);
  device.abort();
  const auto context = device.createContext(0, 2);
  const auto buffer = context->createUnboundBuffer(&byte_, 1);
  EXPECT_TRUE(wait_recv_is_ended(*buffer));
  EXPECT_TRUE(ends_with_io_exception([&] { context->createPair(1); }));
}

// With no descriptor left for the pair's own socket.
TEST_F(AbortableTransport, APairWithoutASocketIsThisMachinesFault) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string text;
  try {
    context_->createPair(1);
  } catch (const std::exception& error) {
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(text.starts_with("gloo: cannot open a socket for rank 1 (")) << text;
}

TEST_F(AbortableTransport, EndingOneWaitIsNoAbort) {
  const auto buffer = make_buffer();
  buffer->abortWaitRecv();
  EXPECT_FALSE(buffer->waitRecv(std::chrono::hours(1)));
  buffer->abortWaitSend();
  EXPECT_FALSE(buffer->waitSend(std::chrono::hours(1)));
}

}  // namespace
}  // namespace ddproof
