// The token of a job's store: who does not know it can neither join nor read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/store/asio.h"
#include "backends/store/protocol.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"
#include "backends/store/token.h"
#include "tests/support/refusal.h"

namespace ddproof {
namespace {

std::string hex_of(const Proof& proof) {
  std::string text;
  for (const char byte : proof) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// As Python's hmac makes them.
TEST(StoreToken, ProofsAreHmacSha256) {
  Nonce of_client{}, of_server{};
  std::iota(of_client.begin(), of_client.end(), 0);
  std::iota(of_server.begin(), of_server.end(), 16);
  EXPECT_EQ(hex_of(make_proof("secret", StoreSide::kClient, of_client, of_server)),
            "a3858710ff5b9c5f988e1dda9ab439610c20bac056917bd859ce3eb542376ad8");
  EXPECT_EQ(hex_of(make_proof("secret", StoreSide::kServer, of_client, of_server)),
            "6b35838be1b791101e8022bd8a2dd7d845a17ac2083dbbfb62ba26c0e7f7bcec");
}

TEST(StoreToken, NoTwoNoncesAreTheSame) {
  OsRuntime one(7), two(7);
  const Nonce first = make_nonce(one);
  EXPECT_NE(first, make_nonce(one));
  EXPECT_NE(first, make_nonce(two)) << "the same random stream, at another time";
}

class TokenTest : public testing::Test {
 protected:
  TcpStoreOptions with(const std::string& token, std::uint16_t port) const {
    return {.host = "127.0.0.1",
            .port = port,
            .token = token,
            .connect_timeout = std::chrono::seconds(20)};
  }
  std::string refusal(const std::string& token, std::uint16_t port) {
    const std::string text = refusal_of([&] { TcpStore(runtime_, with(token, port)); });
    const std::string start = fmt::format("store [tcp 127.0.0.1:{}]: ", port);
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }
  OsRuntime runtime_;
};

TEST_F(TokenTest, WhoKnowsItIsServedOnEveryConnection) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1", .token = "of this job"});
  TcpStore client(runtime_, with("of this job", server.port()));
  TcpStore other(runtime_, with("of this job", server.port()));
  client.set_last_will("will", "it died");  // on a connection of its own
  const auto watch = other.watch({"key", "will"});
  client.set("key", "value");
  EXPECT_EQ(watch->wait(kForever), KeyWatch::Outcome::kFound);
  EXPECT_EQ(other.get("key", kForever), "value");
  client.die();
  EXPECT_EQ(other.get("will", kForever), "it died");
}

TEST_F(TokenTest, BothSidesMustHaveTheSame) {
  const TcpStoreServer with_one(runtime_, {.host = "127.0.0.1", .token = "right"});
  const TcpStoreServer without(runtime_, {.host = "127.0.0.1"});
  const std::string advice = "; give all processes of a job the same one";
  EXPECT_EQ(refusal("wrong", with_one.port()),
            "the server has another token than this program" + advice);
  EXPECT_EQ(refusal("", with_one.port()),
            "the server asks for a token, and this program has none" + advice);
  EXPECT_EQ(refusal("right", without.port()),
            "the server asks for no token, and this program has one, so it may be another job's" +
                advice);
  EXPECT_EQ(refusal("right", with_one.port()), "not refused");
  const std::string size = "store: the token has 4097 bytes, allowed are 0, for none, to 4096";
  EXPECT_EQ(refusal(std::string(4097, 't'), with_one.port()), size);
  EXPECT_EQ(refusal_of([&] {
              TcpStoreServer(runtime_, {.host = "127.0.0.1", .token = std::string(4097, 't')});
            }),
            size);
}

// What it says before its proof is not looked at, and it hears nothing but a nonce.
TEST_F(TokenTest, AStrangerCanNeitherReadNorWrite) {
  const TcpStoreServer server(runtime_, {.host = "127.0.0.1", .token = "secret"});
  TcpStore client(runtime_, with("secret", server.port()));
  const std::string request = protocol::encode(
      {.operation = protocol::Operation::kSet, .keys = {"key"}, .value = "a stranger's"});
  for (const bool claims_token : {false, true}) {
    asio::io_context io;
    Tcp::socket stranger(io);
    stranger.connect({asio::ip::address_v4::loopback(), server.port()});
    const protocol::Hello hello = protocol::make_hello({.has_token = claims_token});
    asio::write(stranger, asio::buffer(hello));
    asio::write(stranger, asio::buffer(request + std::string(100, 'x')));
    std::string heard;
    ErrorCode error;
    asio::read(stranger, asio::dynamic_buffer(heard), error);
    EXPECT_LE(heard.size(), hello.size() + (claims_token ? sizeof(Nonce) : 0));
    EXPECT_EQ(client.try_get("key"), std::nullopt);
  }
}

// A server that does not know the token cannot pass as the job's: it would learn what ranks say.
TEST_F(TokenTest, AServerMustProveItToo) {
  asio::io_context io;
  Tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  const auto answer = runtime_.spawn("server", [&] {
    Tcp::socket client = acceptor.accept();
    protocol::Hello hello{};
    Nonce nonce{};
    Proof proof{};
    asio::read(client, asio::buffer(hello));
    asio::write(client, asio::buffer(hello));
    asio::read(client, asio::buffer(nonce));
    asio::write(client, asio::buffer(nonce));
    asio::read(client, asio::buffer(proof));
    asio::write(client, asio::buffer(proof));  // the client's own
  });
  EXPECT_EQ(refusal("secret", acceptor.local_endpoint().port()),
            "the server has another token than this program; give all processes of a job the same "
            "one");
  answer->join();
}

}  // namespace
}  // namespace ddproof
