#include "backends/store/store_connection.h"

#include <algorithm>
#include <utility>

#include "backends/api/error.h"
#include "backends/store/host_and_port.h"
#include "backends/store/socket_options.h"

namespace ddproof {

namespace {

constexpr const char* kTokenAdvice = "give all processes of a job the same one";

// A connection that was closed shows as any of these, as the timing has it.
bool is_closed(const ErrorCode& error) {
  return error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe;
}

std::string reason(const ErrorCode& error) {
  return is_closed(error) ? "the server is gone" : error.message();
}

}  // namespace

std::string describe_store(const TcpStoreOptions& options) {
  return "store [tcp " + host_and_port(options.host, options.port) + "]";
}

StoreConnection::Endpoints StoreConnection::resolve(const TcpStoreOptions& options) {
  ErrorCode error;
  asio::io_context io;
  const auto endpoints = Tcp::resolver(io).resolve(options.host, std::to_string(options.port),
                                                   Tcp::resolver::numeric_service, error);
  if (error) throw ConnectFailed{"the name cannot be resolved: " + error.message()};
  return endpoints;
}

StoreConnection::StoreConnection(const TcpStoreOptions& options, const Endpoints& endpoints,
                                 const Nonce& nonce, Duration timeout)
    : options_(options) {
  connect(endpoints, timeout);
  set_socket_options(socket_);
  greet(timeout);
  if (!options_.token.empty()) prove(nonce, timeout);
}

void StoreConnection::run_io(Duration timeout) {
  io_.restart();
  // Asio adds the timeout to its clock, so kForever would overflow; nobody waits for a century.
  io_.run_for(std::min<Duration>(timeout, std::chrono::hours(24 * 365 * 100)));
  io_.poll();  // what has come counts, however late this thread gets to look
}

bool StoreConnection::run(Duration timeout) {
  run_io(timeout);
  if (progress_ != Progress::kDone) return false;
  progress_ = Progress::kIdle;
  return true;
}

void StoreConnection::finish(const ErrorCode& error) {
  error_ = error;
  progress_ = Progress::kDone;
}

void StoreConnection::connect(const Endpoints& endpoints, Duration timeout) {
  progress_ = Progress::kPending;
  asio::async_connect(socket_, endpoints,
                      [this](const ErrorCode& result, const Tcp::endpoint&) { finish(result); });
  if (!run(timeout)) throw ConnectFailed{"no answer"};
  if (error_) throw ConnectFailed{error_.message()};
}

void StoreConnection::exchange(asio::const_buffer sent, asio::mutable_buffer received,
                               Duration timeout) {
  progress_ = Progress::kPending;
  asio::async_write(socket_, sent, [&](const ErrorCode& error, std::size_t) {
    if (error) return finish(error);
    asio::async_read(socket_, received,
                     [this](const ErrorCode& result, std::size_t) { finish(result); });
  });
  if (!run(timeout)) throw ConnectFailed{"it does not answer"};
}

void StoreConnection::greet(Duration timeout) {
  const protocol::Greeting mine{.has_token = !options_.token.empty()};
  const protocol::Hello hello = protocol::make_hello(mine);
  protocol::Hello answer{};
  exchange(asio::buffer(hello), asio::buffer(answer), timeout);
  if (is_closed(error_)) {
    throw ConnectFailed{
        "it closes the connection at once, as a full store or another program does"};
  }
  if (error_) throw ConnectFailed{error_.message()};
  const std::string who = describe_store(options_);
  const auto theirs = protocol::parse_hello(answer);
  if (!theirs) {
    throw ConfigError(who +
                      ": who answers is no ddproof store; see whether another program uses "
                      "this port");
  }
  if (theirs->version != mine.version) {
    throw ConfigError(who + ": the server speaks version " + std::to_string(theirs->version) +
                      " of the protocol, this program version " + std::to_string(mine.version) +
                      "; use the same ddproof everywhere");
  }
  if (theirs->has_token == mine.has_token) return;
  throw ConfigError(who +
                    (mine.has_token ? ": the server asks for no token, and this program has "
                                      "one, so it may be another job's"
                                    : ": the server asks for a token, and this program has "
                                      "none") +
                    "; " + kTokenAdvice);
}

void StoreConnection::prove(const Nonce& mine, Duration timeout) {
  Nonce theirs{};
  exchange(asio::buffer(mine), asio::buffer(theirs), timeout);
  const auto proof_of = [&](StoreSide side) {
    return make_proof(options_.token, side, mine, theirs);
  };
  Proof answer{};
  if (!error_) {
    const Proof proof = proof_of(StoreSide::kClient);
    exchange(asio::buffer(proof), asio::buffer(answer), timeout);
  }
  if (error_ && !is_closed(error_)) throw ConnectFailed{error_.message()};
  if (!error_ && is_same(proof_of(StoreSide::kServer), answer)) return;
  throw ConfigError(describe_store(options_) +
                    ": the server has another token than this program; " + kTokenAdvice);
}

void StoreConnection::send(const protocol::Request& request, Duration timeout,
                           const std::string& call) {
  const std::string bytes = protocol::encode(request);
  bool sent = false;
  ErrorCode error;
  asio::async_write(socket_, asio::buffer(bytes), [&](const ErrorCode& result, std::size_t) {
    error = result;
    sent = true;
    io_.stop();  // a response may be pending as well
  });
  run_io(timeout);
  if (!sent) {
    ErrorCode ignored;
    socket_.close(ignored);
    io_.restart();
    io_.run();  // the handlers refer to this call
    lose(call, "the server does not read");
  }
  if (error) lose(call, reason(error));
}

std::optional<protocol::Response> StoreConnection::receive(Duration timeout,
                                                           const std::string& call) {
  if (progress_ == Progress::kIdle) read_size();
  if (!run(timeout)) return std::nullopt;
  if (error_) lose(call, reason(error_));
  auto response = protocol::decode_response(body_);
  if (!response) lose(call, "the server sent a malformed response");
  return response;
}

void StoreConnection::read_size() {
  progress_ = Progress::kPending;
  asio::async_read(socket_, asio::buffer(size_), [this](const ErrorCode& error, std::size_t) {
    if (error) return finish(error);
    if (protocol::decode_size(size_) > protocol::kBodyBytesMax) {
      return finish(asio::error::message_size);
    }
    read_body();
  });
}

void StoreConnection::read_body() {
  body_.resize(protocol::decode_size(size_));
  asio::async_read(socket_, asio::buffer(body_),
                   [this](const ErrorCode& error, std::size_t) { finish(error); });
}

void StoreConnection::interrupt() {
  asio::post(io_, [this] { io_.stop(); });
}

void StoreConnection::say_goodbye() noexcept {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  const std::string bytes = protocol::encode(protocol::Request{});
  socket_.write_some(asio::buffer(bytes), ignored);
}

void StoreConnection::lose(const std::string& call, const std::string& why) const {
  throw CommError(CommErrorKind::kPeerLost,
                  describe_store(options_) + " " + call + ": " + why +
                      "; see whether the process that hosts the store is alive");
}

}  // namespace ddproof
