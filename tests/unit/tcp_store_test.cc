// What only the TCP store does: addresses, ports, strangers and lost servers. What all stores
// promise is in tests/contract/store_contract_test.cc.
#include "backends/store/tcp_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/store/asio.h"
#include "backends/store/protocol.h"
#include "backends/store/store_connection.h"
#include "backends/store/tcp_store_server.h"
#include "tests/support/stepped_runtime.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <class Error>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

// A connection that says what the test wants.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
  }
  void send(const std::string& bytes) { asio::write(socket_, asio::buffer(bytes)); }
  void send_hello(std::uint16_t version = protocol::kVersion) {
    const protocol::Hello hello = protocol::make_hello({version});
    send({hello.begin(), hello.end()});
  }
  protocol::Hello read_hello() {
    protocol::Hello hello{};
    asio::read(socket_, asio::buffer(hello));
    return hello;
  }
  // Waits until the server closes the connection; returns what it still said.
  std::string read_to_end() {
    std::string bytes;
    ErrorCode error;
    asio::read(socket_, asio::dynamic_buffer(bytes), error);
    return bytes;
  }

 private:
  asio::io_context io_;
  Tcp::socket socket_{io_};
};

// Listens and does what the test wants with the first client.
class FakeServer {
 public:
  std::uint16_t port() { return acceptor_.local_endpoint().port(); }
  Tcp::socket accept() { return acceptor_.accept(); }
  // One that has been greeted as a store does.
  Tcp::socket accept_client() {
    Tcp::socket client = accept();
    protocol::Hello hello{};
    asio::read(client, asio::buffer(hello));
    asio::write(client, asio::buffer(protocol::make_hello({})));
    return client;
  }

 private:
  asio::io_context io_;
  Tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
};

class TcpStoreTest : public testing::Test {
 protected:
  TcpStoreOptions to(std::uint16_t port) {
    return {.host = "127.0.0.1", .port = port, .connect_timeout = seconds(20)};
  }
  // The server still works for others.
  void expect_serving(const TcpStoreServer& server) {
    TcpStore client(runtime_, to(server.port()));
    client.set("still", "here");
    EXPECT_EQ(client.try_get("still"), "here");
  }
  OsRuntime runtime_;
};

TEST_F(TcpStoreTest, PortInUseNamesTheAddressAndItsHolder) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  const std::string place = "store server: 127.0.0.1:" + std::to_string(server.port());
  TcpStoreServerOptions options{.host = "127.0.0.1", .port = server.port()};
  EXPECT_EQ(error_of<ResourceError>([&] { TcpStoreServer(runtime_, options); }),
            place + " is in use; choose another port, or 0 for any free one");
  options.port_holder = [](std::uint16_t) { return "python3 (pid 7)"; };
  EXPECT_EQ(error_of<ResourceError>([&] { TcpStoreServer(runtime_, options); }),
            place + " is in use by python3 (pid 7); choose another port, or 0 for any free one");
  options.host = "";
  const std::string everywhere =
      error_of<ResourceError>([&] { TcpStoreServer(runtime_, options); });
  EXPECT_TRUE(everywhere.starts_with("store server: *:")) << everywhere;
}

TEST_F(TcpStoreTest, AnAddressOfAnotherMachineIsRefused) {
  const std::string text =
      error_of<ResourceError>([&] { TcpStoreServer(runtime_, {.host = "192.0.2.1", .port = 0}); });
  EXPECT_TRUE(text.starts_with("store server: 192.0.2.1:0 cannot be listened on (")) << text;
}

TEST_F(TcpStoreTest, APortIsFreeAgainAfterTheServer) {
  std::uint16_t port = 0;
  {
    const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
    port = server.port();
    expect_serving(server);
  }
  const TcpStoreServer again(runtime_, {.host = "127.0.0.1", .port = port});
  expect_serving(again);
}

TEST_F(TcpStoreTest, ListensOnEveryAddressByDefault) {
  const TcpStoreServer server(runtime_, {});
  for (const char* host : {"127.0.0.1", "localhost"}) {
    TcpStore client(runtime_, {.host = host, .port = server.port()});
    client.add("clients", 1);
  }
  expect_serving(server);
}

TEST_F(TcpStoreTest, WorksOverIpv6) {
  std::unique_ptr<TcpStoreServer> server;
  try {
    server = std::make_unique<TcpStoreServer>(runtime_, TcpStoreServerOptions{.host = "::1"});
  } catch (const ResourceError&) {
    GTEST_SKIP() << "no IPv6 on this machine";
  }
  TcpStore client(runtime_, {.host = "::1", .port = server->port()});
  client.set("key", "value");
  EXPECT_EQ(client.try_get("key"), "value");
}

TEST_F(TcpStoreTest, AClientMayComeBeforeItsServer) {
  std::uint16_t port = 0;
  {
    const TcpStoreServer first(runtime_, {.host = "127.0.0.1"});
    port = first.port();
  }
  std::string got;
  const std::unique_ptr<Task> early = runtime_.spawn("early", [&] {
    TcpStore client(runtime_, to(port));
    got = client.get("key", seconds(20));
  });
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1", .port = port});
  TcpStore client(runtime_, to(port));
  client.set("key", "value");
  early->join();
  EXPECT_EQ(got, "value");
}

TEST_F(TcpStoreTest, NobodyThereIsATimeoutThatNamesTheAddress) {
  asio::io_context io;
  const Tcp::socket holder(io, {asio::ip::address_v4::loopback(), 0});  // bound, never listening
  const std::uint16_t port = holder.local_endpoint().port();
  TcpStoreOptions options = to(port);
  options.connect_timeout = milliseconds(1);
  const std::string text = error_of<CommError>([&] { TcpStore(runtime_, options); });
  EXPECT_EQ(text, "store [tcp 127.0.0.1:" + std::to_string(port) +
                      "]: cannot be reached (Connection refused); see whether the process that "
                      "hosts the store runs, and check MASTER_ADDR and MASTER_PORT");
}

// Sleeping moves its clock and takes no time.
class HastyRuntime final : public SteppedRuntime {
 public:
  void sleep_for(Duration duration) override { advance(duration); }
};

TEST_F(TcpStoreTest, SaysEveryTenSecondsWhyItIsNotConnectedYet) {
  asio::io_context io;
  const Tcp::socket holder(io, {asio::ip::address_v4::loopback(), 0});  // bound, never listening
  const std::uint16_t port = holder.local_endpoint().port();
  HastyRuntime runtime;
  std::vector<std::string> notices;
  TcpStoreOptions options = to(port);
  options.connect_timeout = seconds(35);
  options.on_connect_delay = [&](const std::string& text) { notices.push_back(text); };
  EXPECT_NE(error_of<CommError>([&] { TcpStore(runtime, options); }), "");
  ASSERT_EQ(notices.size(), 3u);
  EXPECT_EQ(notices[0], "store [tcp 127.0.0.1:" + std::to_string(port) +
                            "]: cannot be reached yet (Connection refused); trying for 24 s more");
  EXPECT_TRUE(notices[2].ends_with("trying for 4 s more")) << notices[2];
}

TEST_F(TcpStoreTest, AnUnknownHostIsNamed) {
  const TcpStoreOptions options{
      .host = "no-such-host.invalid", .port = 1, .connect_timeout = milliseconds(1)};
  const std::string text = error_of<CommError>([&] { TcpStore(runtime_, options); });
  EXPECT_TRUE(
      text.starts_with("store [tcp no-such-host.invalid:1]: cannot be reached (the name "
                       "cannot be resolved: "))
      << text;
}

TEST_F(TcpStoreTest, AMalformedMessageClosesThatClientOnly) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  const std::vector<std::string> malformed = {
      std::string("\x01\0\0\0\x63", 5),                  // an operation that does not exist
      std::string("\0\0\0\0", 4),                        // an empty body
      std::string("\x05\0\0\0\x00\xff\xff\xff\xff", 9),  // more keys than bytes
      protocol::encode(protocol::Request{}) + "?",       // goodbye, and more
  };
  for (const std::string& bytes : malformed) {
    Stranger stranger(server.port());
    stranger.send_hello();
    stranger.read_hello();
    stranger.send(bytes);
    EXPECT_EQ(stranger.read_to_end(), "");
  }
  expect_serving(server);
}

TEST_F(TcpStoreTest, AnOversizedMessageClosesThatClientOnly) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  Stranger stranger(server.port());
  stranger.send_hello();
  stranger.read_hello();
  stranger.send("\xff\xff\xff\xff");
  EXPECT_EQ(stranger.read_to_end(), "");
  expect_serving(server);
}

TEST_F(TcpStoreTest, AnOversizedKeyIsRefusedByTheServerAsWell) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  Stranger stranger(server.port());
  stranger.send_hello();
  stranger.read_hello();
  stranger.send(protocol::encode(protocol::Request{
      .operation = protocol::Operation::kSet, .keys = {std::string(5000, 'k')}, .value = "v"}));
  stranger.send(protocol::encode(protocol::Request{}));
  const std::string said = stranger.read_to_end();
  EXPECT_NE(said.find("has 5000 bytes, allowed are 1 to 4096"), std::string::npos) << said;
}

TEST_F(TcpStoreTest, WhatIsNoClientOfOursIsClosedAtOnce) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  Stranger stranger(server.port());
  stranger.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(stranger.read_to_end(), "");
  expect_serving(server);
}

TEST_F(TcpStoreTest, AClientOfAnotherVersionIsToldOursAndClosed) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  Stranger stranger(server.port());
  stranger.send_hello(protocol::kVersion + 1);
  EXPECT_EQ(protocol::parse_hello(stranger.read_hello()), protocol::Greeting{});
  EXPECT_EQ(stranger.read_to_end(), "");
}

TEST_F(TcpStoreTest, AServerOfAnotherVersionIsAConfigError) {
  FakeServer server;
  const std::unique_ptr<Task> answer = runtime_.spawn("server", [&] {
    Tcp::socket client = server.accept();
    asio::write(client, asio::buffer(protocol::make_hello({9})));
    char byte = 0;
    ErrorCode closed;
    while (!closed) asio::read(client, asio::buffer(&byte, 1), closed);
  });
  const std::string text = error_of<ConfigError>([&] { TcpStore(runtime_, to(server.port())); });
  answer->join();
  EXPECT_EQ(text, "store [tcp 127.0.0.1:" + std::to_string(server.port()) +
                      "]: the server speaks version 9 of the protocol, this program version 4; use "
                      "the same ddproof everywhere");
}

TEST_F(TcpStoreTest, WhoAnswersOtherwiseIsNoStore) {
  FakeServer server;
  const std::unique_ptr<Task> answer = runtime_.spawn("server", [&] {
    Tcp::socket client = server.accept();
    asio::write(client, asio::buffer(std::string("SSH-2.0-OpenSSH\r\n")));
    char byte = 0;
    ErrorCode closed;
    while (!closed) asio::read(client, asio::buffer(&byte, 1), closed);
  });
  const std::string text = error_of<ConfigError>([&] { TcpStore(runtime_, to(server.port())); });
  answer->join();
  EXPECT_EQ(text, "store [tcp 127.0.0.1:" + std::to_string(server.port()) +
                      "]: who answers is no ddproof store; see whether another program uses this "
                      "port");
}

TEST_F(TcpStoreTest, ALostServerIsToldAtOnce) {
  auto server = std::make_unique<TcpStoreServer>(runtime_, TcpStoreServerOptions{"127.0.0.1"});
  TcpStore client(runtime_, to(server->port()));
  const std::string who = "store [tcp 127.0.0.1:" + std::to_string(server->port()) + "]";
  std::string text;
  const std::unique_ptr<Task> reader = runtime_.spawn("reader", [&] {
    TcpStore waiting(runtime_, to(server->port()));
    waiting.set("reader is there", "");
    text = error_of<CommError>([&] { waiting.get("never", kForever); });
  });
  client.wait({"reader is there"}, seconds(20));
  server.reset();
  reader->join();
  const std::string alive = "; see whether the process that hosts the store is alive";
  EXPECT_EQ(text, who + " get: the server is gone" + alive);
  const std::string first = error_of<CommError>([&] { client.set("key", "value"); });
  EXPECT_EQ(first, who + " set: the server is gone" + alive);
  const std::string again = error_of<CommError>([&] { client.set("key", "value"); });
  EXPECT_EQ(again, who + ": cannot be reached any more (Connection refused)" + alive);
}

TEST_F(TcpStoreTest, AServerThatDoesNotAnswerIsNoHang) {
  FakeServer server;
  std::unique_ptr<Tcp::socket> kept;
  const std::unique_ptr<Task> answer = runtime_.spawn(
      "server", [&] { kept = std::make_unique<Tcp::socket>(server.accept_client()); });
  TcpStoreOptions options = to(server.port());
  options.answer_timeout = milliseconds(30);
  TcpStore client(runtime_, options);
  answer->join();
  const std::string who = "store [tcp 127.0.0.1:" + std::to_string(server.port()) + "]";
  EXPECT_EQ(error_of<CommError>([&] { client.get("key", milliseconds(10)); }),
            who +
                " get: the server does not answer; see whether the process that hosts the store is "
                "alive");
}

TEST_F(TcpStoreTest, ACallThatMayNotTakeLongEndsAtItsDeadline) {
  FakeServer server;
  std::unique_ptr<Tcp::socket> kept;
  const std::unique_ptr<Task> answer = runtime_.spawn(
      "server", [&] { kept = std::make_unique<Tcp::socket>(server.accept_client()); });
  TcpStoreOptions options = to(server.port());
  options.answer_timeout = kForever;
  TcpStore client(runtime_, options);
  answer->join();
  const auto hurried = client.answering_by(runtime_.now() + milliseconds(30));
  EXPECT_NE(error_of<CommError>([&] {
              hurried->set("key", "value");
            }).find(" set: the server does not answer; "),
            std::string::npos);
  // The first call broke its connection, and no new one is answered either.
  EXPECT_NE(error_of<CommError>([&] {
              hurried->set("key", "value");
            }).find("]: cannot be reached any more ("),
            std::string::npos);
}

// The server has read the will and does not answer; the other call needs none of that connection.
TEST_F(TcpStoreTest, ALastWillThatIsNotAnsweredKeepsNoOtherCallWaiting) {
  FakeServer server;
  std::vector<Tcp::socket> kept;
  const std::unique_ptr<Task> answer = runtime_.spawn("server", [&] {
    kept.push_back(server.accept_client());
    kept.push_back(server.accept_client());
    char byte = 0;
    asio::read(kept[1], asio::buffer(&byte, 1));
  });
  TcpStoreOptions options = to(server.port());
  options.answer_timeout = kForever;
  TcpStore client(runtime_, options);
  std::string text;
  const std::unique_ptr<Task> will = runtime_.spawn(
      "will", [&] { text = error_of<CommError>([&] { client.set_last_will("lost", ""); }); });
  answer->join();
  const auto hurried = client.answering_by(runtime_.now() + milliseconds(30));
  EXPECT_NE(error_of<CommError>([&] {
              hurried->set("key", "value");
            }).find(" set: the server does not answer; "),
            std::string::npos);
  EXPECT_NE(error_of<CommError>([&] {
              hurried->set_last_will("lost", "second");
            }).find(" set_last_will: the server does not answer; "),
            std::string::npos);
  kept.clear();
  will->join();
  EXPECT_NE(text.find(" set_last_will: the server is gone"), std::string::npos) << text;
}

TEST_F(TcpStoreTest, ALastWillThatFailedIsSetOnANewConnection) {
  FakeServer server;
  std::vector<Tcp::socket> kept;
  const std::unique_ptr<Task> answer = runtime_.spawn("server", [&] {
    kept.push_back(server.accept_client());
    server.accept_client();  // and closed
    kept.push_back(server.accept_client());
    asio::write(kept[1], asio::buffer(protocol::encode(protocol::Response{})));
  });
  TcpStore client(runtime_, to(server.port()));
  EXPECT_THROW(client.set_last_will("lost", "first"), CommError);
  client.set_last_will("lost", "second");
  answer->join();
}

// Looking a name up takes as long as the resolver likes, so calls do not.
TEST_F(TcpStoreTest, AConnectionLooksNoNameUp) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  TcpStoreOptions options = to(server.port());
  const auto endpoints = StoreConnection::resolve(options);
  options.host = "no-such-host.invalid";
  StoreConnection connection(options, endpoints, Nonce{}, seconds(20));
  connection.send({.operation = protocol::Operation::kNumKeys}, seconds(20), "num_keys");
  EXPECT_TRUE(connection.receive(seconds(20), "num_keys"));
}

TEST_F(TcpStoreTest, AWatchEndsThoughTheServerDoesNotAnswer) {
  FakeServer server;
  std::unique_ptr<Tcp::socket> kept;
  const std::unique_ptr<Task> answer = runtime_.spawn(
      "server", [&] { kept = std::make_unique<Tcp::socket>(server.accept_client()); });
  TcpStore client(runtime_, to(server.port()));
  answer->join();
  const std::unique_ptr<KeyWatch> watch = client.watch({"key"});
  auto outcome = KeyWatch::Outcome::kFound;
  const std::unique_ptr<Task> waiter =
      runtime_.spawn("waiter", [&] { outcome = watch->wait(kForever); });
  watch->end();
  waiter->join();
  EXPECT_EQ(outcome, KeyWatch::Outcome::kEnded);
}

TEST_F(TcpStoreTest, ALostServerEndsAWatch) {
  auto server = std::make_unique<TcpStoreServer>(runtime_, TcpStoreServerOptions{"127.0.0.1"});
  TcpStore client(runtime_, to(server->port()));
  const std::unique_ptr<KeyWatch> watch = client.watch({"key"});
  server.reset();
  EXPECT_NE(error_of<CommError>([&] { watch->wait(kForever); }).find(" watch: the server is gone"),
            std::string::npos);
}

TEST_F(TcpStoreTest, TheHostWaitsForItsClientsAlone) {
  TcpStoreServer server(runtime_, {.host = "127.0.0.1"});
  server.wait_for_clients_to_leave(kForever);  // nobody has come
  auto leaving = std::make_unique<TcpStore>(runtime_, to(server.port()));
  auto dying = std::make_unique<TcpStore>(runtime_, to(server.port()));
  dying->set_last_will("lost", "");
  server.wait_for_clients_to_leave(milliseconds(1));  // returns though two are there
  leaving.reset();
  dying->die();
  server.wait_for_clients_to_leave(kForever);
}

TEST_F(TcpStoreTest, MoreClientsThanAllowedAreClosed) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1", .connections_max = 2});
  TcpStore first(runtime_, to(server.port()));
  TcpStore second(runtime_, to(server.port()));
  Stranger third(server.port());
  EXPECT_EQ(third.read_to_end(), "");
  first.set("key", "value");
  EXPECT_EQ(second.try_get("key"), "value");
}

}  // namespace
}  // namespace ddproof
