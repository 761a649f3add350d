// One connection of a TCP store's client: connect, send, receive, each with a deadline.
// Used by one task at a time, but for interrupt().
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "backends/store/asio.h"
#include "backends/store/protocol.h"
#include "backends/store/tcp_store.h"
#include "backends/store/token.h"

namespace ddproof {

class StoreConnection {
 public:
  struct ConnectFailed {
    std::string why;
  };
  // Where the host's name leads to. Has no deadline: the system's resolver blocks for as long as it
  // is set to try. Throws ConnectFailed.
  using Endpoints = Tcp::resolver::results_type;
  static Endpoints resolve(const TcpStoreOptions& options);

  // Connects once, to the first endpoint that accepts, and exchanges hellos and proofs of the token
  // within `timeout`, twice that at most. `nonce` is this connection's own. Throws ConnectFailed
  // when nobody is there, ConfigError when it is no store of this version, or of another token.
  StoreConnection(const TcpStoreOptions& options, const Endpoints& endpoints, const Nonce& nonce,
                  Duration timeout);

  // Both throw CommError{kPeerLost} when the connection broke. `call` is for its text.
  // send() also when the server takes longer than `timeout` to accept the bytes.
  void send(const protocol::Request& request, Duration timeout, const std::string& call);
  // Empty when `timeout` passed or it was interrupted; a later receive() goes on with the same
  // response.
  std::optional<protocol::Response> receive(Duration timeout, const std::string& call);

  // Makes the receive() in progress, or else the next one, return at once; a send() would fail
  // instead, so none may follow. From any task.
  void interrupt();

  // Tells the server that this end is intended. Never throws.
  void say_goodbye() noexcept;

 private:
  enum class Progress { kIdle, kPending, kDone };
  void run_io(Duration timeout);
  // Runs the operation in progress; false when it was not done within `timeout`.
  bool run(Duration timeout);
  void connect(const Endpoints& endpoints, Duration timeout);
  void greet(Duration timeout);
  void prove(const Nonce& mine, Duration timeout);
  // Writes, then reads; what ended it is in error_. Throws ConnectFailed after `timeout`.
  void exchange(asio::const_buffer sent, asio::mutable_buffer received, Duration timeout);
  void read_size();
  void read_body();
  void finish(const ErrorCode& error);
  [[noreturn]] void lose(const std::string& call, const std::string& why) const;

  const TcpStoreOptions& options_;
  asio::io_context io_{1};
  Tcp::socket socket_{io_};
  Progress progress_ = Progress::kIdle;
  ErrorCode error_;
  std::array<char, protocol::kSizeBytes> size_{};
  std::string body_;
};

// "store [tcp HOST:PORT]", the start of every message.
std::string describe_store(const TcpStoreOptions& options);

}  // namespace ddproof
