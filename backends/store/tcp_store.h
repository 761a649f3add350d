// The key-value store's client over TCP. See tcp_store_server.h and protocol.h.
//
// Invariants: a call uses one connection alone, and so does a watch; a task that finds all of them
// busy opens another one, so that a task may set a key while another one waits. The last wills have
// a connection of their own, and are withdrawn when setting one fails. Errors, besides those of
// Store: after the server closed a connection, or did not answer within `answer_timeout`, the call
// throws CommError{kPeerLost}; it is not tried again, since it may have been carried out. Threads:
// any task of the rank; destroy when no call is running.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"

namespace ddproof {

inline constexpr Duration kConnectNotice = std::chrono::seconds(10);

struct TcpStoreOptions {
  std::string host;
  std::uint16_t port = 0;
  std::string token;  // the server's; empty: it asks for none
  // The server may start later than its clients: connecting is tried again until this passes.
  Duration connect_timeout = std::chrono::minutes(5);
  // Told each kConnectNotice that connecting takes: one line, what fails and until when it is tried
  // again. May be empty.
  std::function<void(const std::string&)> on_connect_delay;
  // How long the server may take for a call that waits for nothing.
  Duration answer_timeout = std::chrono::minutes(1);
};

class TcpStore : public Store {
 public:
  // Connects. `runtime` must outlive the store.
  // Throws CommError{kTimeout} when nobody could be reached in time, and ConfigError when who
  // answers is no store of this version, or has another token; both name host and port.
  TcpStore(Runtime& runtime, const TcpStoreOptions& options);
  // Says goodbye.
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Duration timeout) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::vector<std::optional<std::string>> multi_get(const std::vector<std::string>& keys) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void append(const std::string& key, const std::string& bytes) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  void wait(const std::vector<std::string>& keys, Duration timeout) override;
  std::unique_ptr<KeyWatch> watch(const std::vector<std::string>& keys) override;
  bool check(const std::vector<std::string>& keys) override;
  bool remove(const std::string& key) override;
  std::int64_t num_keys() override;
  void set_last_will(const std::string& key, const std::string& value) override;
  std::unique_ptr<Store> answering_by(TimePoint deadline) override;

  // Closes the connections without a goodbye, as when the process dies. No call may follow.
  void die();

 private:
  class Client;
  class Watch;
  TcpStore(std::shared_ptr<Client> client, TimePoint deadline);

  std::shared_ptr<Client> client_;
  TimePoint deadline_ = kForever;  // of every answer
};

}  // namespace ddproof
