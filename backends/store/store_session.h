// One client's connection at the TCP store server. Runs in the server's task only; keeps itself
// alive while a read, a write or a wait is pending.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/api/runtime.h"
#include "backends/store/asio.h"
#include "backends/store/key_value_table.h"
#include "backends/store/protocol.h"
#include "backends/store/token.h"

namespace ddproof {

// How many sessions there are. Any task.
class SessionCount {
 public:
  explicit SessionCount(Runtime& runtime) : monitor_(runtime.make_monitor()) {}
  int now() const;
  void add(int difference);
  // Returns when there is none or when the deadline passed.
  void wait_for_none(TimePoint deadline);

 private:
  std::unique_ptr<Monitor> monitor_;  // guards count_
  int count_ = 0;
};

class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  // What all sessions of a server share.
  struct Shared {
    KeyValueTable table;
    SessionCount sessions;
    std::string token;  // empty: none is asked for
    std::function<Nonce()> make_nonce;
  };
  // Counts itself in the sessions while it lives. `shared` must outlive it.
  StoreSession(Tcp::socket socket, Shared& shared);
  ~StoreSession();
  StoreSession(const StoreSession&) = delete;
  StoreSession& operator=(const StoreSession&) = delete;

  // Requires: owned by a shared_ptr. Returns at once.
  void start();

 private:
  void read_hello();
  void answer_hello(const protocol::Greeting& theirs);
  void exchange_nonces();
  void check_proof();
  // Reads the next request unless a read is pending or an answer is still to be written.
  void read_request();
  void read_body();
  void handle(const protocol::Request& request);
  protocol::Response execute(const protocol::Request& request);
  void begin_wait(const protocol::Request& request);
  void cancel_wait();
  void respond(const protocol::Response& response);
  void write_next();
  // The connection ended: carries out the wills unless the client said goodbye.
  void end();

  struct Waiting {
    std::vector<std::string> keys;
    KeyValueTable::Waiter waiter = 0;
  };

  Tcp::socket socket_;
  Shared& shared_;
  protocol::Hello hello_{};
  Nonce client_nonce_{};
  Nonce server_nonce_{};
  Proof proof_{};
  std::array<char, protocol::kSizeBytes> size_{};
  std::string body_;
  std::deque<std::string> output_;  // the front is being written
  bool reading_ = false;
  bool refused_ = false;  // another version, or only one has a token: close once it was told ours
  std::optional<Waiting> waiting_;
  std::map<std::string, std::string> wills_;
};

}  // namespace ddproof
