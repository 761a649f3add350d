#include "backends/store/tcp_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "backends/api/error.h"
#include "backends/store/key_value_table.h"
#include "backends/store/store_connection.h"

namespace ddproof {

using protocol::Operation;
using protocol::Request;
using protocol::Response;
using protocol::Status;
using ConnectionPtr = std::unique_ptr<StoreConnection>;

// The connections, and one call on one of them. `deadline` bounds the answer, as the options'
// answer timeout does.
class TcpStore::Client {
 public:
  Client(Runtime& runtime, const TcpStoreOptions& options)
      : runtime_(runtime), options_(options), monitor_(runtime.make_monitor()) {
    require_token(options_.token);
    idle_.push_back(connect_until(deadline_after(runtime_.now(), options_.connect_timeout)));
  }

  ~Client() {
    for (const ConnectionPtr& connection : idle_) connection->say_goodbye();
    if (wills_) wills_->say_goodbye();
  }

  Response call(const Request& request, const std::string& name, TimePoint deadline) {
    const TimePoint end = answer_end(deadline);
    ConnectionPtr connection = take(end);
    Response response = exchange(*connection, request, name, end);
    give_back(std::move(connection));
    return checked(std::move(response));
  }

  // As call(), but waits for the answer up to `timeout`.
  Response wait(const Request& request, const std::string& name, Duration timeout,
                TimePoint deadline) {
    ConnectionPtr connection = send(request, name, deadline);
    auto response = connection->receive(timeout, name);
    if (!response) {
      response =
          exchange(*connection, {.operation = Operation::kCancel}, name, answer_end(deadline));
    }
    give_back(std::move(connection));
    if (response->status == Status::kCancelled) {
      throw missing_key_error(describe_store(options_), response->value, timeout);
    }
    return checked(std::move(*response));
  }

  // Sends a request; the caller receives the answer on the connection that is returned.
  ConnectionPtr send(const Request& request, const std::string& name, TimePoint deadline) {
    const TimePoint end = answer_end(deadline);
    ConnectionPtr connection = take(end);
    connection->send(request, end - runtime_.now(), name);
    return connection;
  }

  void give_back(ConnectionPtr connection) {
    MonitorLock lock(*monitor_);
    idle_.push_back(std::move(connection));
  }

  void set_last_will(const Request& request, TimePoint deadline) {
    const TimePoint end = answer_end(deadline);
    ConnectionPtr wills = borrow_wills(end);
    std::optional<Response> response;
    try {
      if (!wills) wills = connect_again(end);
      response = exchange(*wills, request, "set_last_will", end);
    } catch (...) {
      if (wills) wills->say_goodbye();  // this process lives
      return_wills(nullptr);
      throw;
    }
    return_wills(std::move(wills));
    checked(std::move(*response));
  }

  void die() {
    idle_.clear();
    wills_.reset();
  }

  static Response checked(Response response) {
    if (response.status == Status::kRefused) throw ConfigError(response.value);
    return response;
  }

 private:
  ConnectionPtr connect_until(TimePoint deadline) {
    Duration pause = std::chrono::milliseconds(5);
    TimePoint notice_at = runtime_.now() + kConnectNotice;
    while (true) {
      std::string why;
      try {
        endpoints_ = StoreConnection::resolve(options_);
        return std::make_unique<StoreConnection>(
            options_, endpoints_, make_nonce(runtime_),
            std::min<Duration>(deadline - runtime_.now(), kConnectNotice));
      } catch (const StoreConnection::ConnectFailed& failure) {
        why = failure.why;
      }
      if (runtime_.now() + pause >= deadline) {
        throw CommError(CommErrorKind::kTimeout,
                        describe_store(options_) + ": cannot be reached (" + why +
                            "); see whether the process that hosts the store runs, and check "
                            "MASTER_ADDR and MASTER_PORT");
      }
      if (runtime_.now() >= notice_at) {
        notice_at = runtime_.now() + kConnectNotice;
        give_notice(why, deadline - runtime_.now());
      }
      runtime_.sleep_for(pause);
      pause = std::min<Duration>(pause * 2, std::chrono::milliseconds(200));
    }
  }

  void give_notice(const std::string& why, Duration left) {
    if (!options_.on_connect_delay) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    options_.on_connect_delay(describe_store(options_) + ": cannot be reached yet (" + why +
                              "); trying for " + std::to_string(seconds) + " s more");
  }

  // One more connection to a server that was there: no second try.
  ConnectionPtr connect_again(TimePoint end) {
    try {
      return std::make_unique<StoreConnection>(options_, endpoints_, make_nonce(runtime_),
                                               end - runtime_.now());
    } catch (const StoreConnection::ConnectFailed& failure) {
      throw CommError(CommErrorKind::kPeerLost,
                      describe_store(options_) + ": cannot be reached any more (" + failure.why +
                          "); see whether the process that hosts the store is alive");
    }
  }

  TimePoint answer_end(TimePoint deadline) const {
    return std::min(deadline, deadline_after(runtime_.now(), options_.answer_timeout));
  }

  ConnectionPtr take(TimePoint end) {
    {
      MonitorLock lock(*monitor_);
      if (!idle_.empty()) {
        ConnectionPtr connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    return connect_again(end);
  }

  // Empty when there is none yet. One task has it at a time, so that the later of two wills for a
  // key holds; the others wait without keeping anybody from the other connections.
  ConnectionPtr borrow_wills(TimePoint end) {
    MonitorLock lock(*monitor_);
    while (wills_borrowed_) {
      const bool in_time = monitor_->wait(end, {"the store to take a last will", {}, {}});
      if (!in_time && wills_borrowed_) no_answer("set_last_will");
    }
    wills_borrowed_ = true;
    return std::move(wills_);
  }

  void return_wills(ConnectionPtr connection) {
    MonitorLock lock(*monitor_);
    wills_ = std::move(connection);
    wills_borrowed_ = false;
    monitor_->notify_all();
  }

  Response exchange(StoreConnection& connection, const Request& request, const std::string& name,
                    TimePoint end) {
    connection.send(request, end - runtime_.now(), name);
    auto response = connection.receive(end - runtime_.now(), name);
    if (!response) no_answer(name);
    return std::move(*response);
  }

  [[noreturn]] void no_answer(const std::string& name) const {
    throw CommError(CommErrorKind::kPeerLost,
                    describe_store(options_) + " " + name + ": the server does not answer" +
                        "; see whether the process that hosts the store is alive");
  }

  Runtime& runtime_;
  const TcpStoreOptions options_;
  // Found once: looking a name up has no deadline, and the calls have one. Constant afterwards.
  StoreConnection::Endpoints endpoints_;
  std::unique_ptr<Monitor> monitor_;  // guards all below
  std::vector<ConnectionPtr> idle_;
  ConnectionPtr wills_;
  bool wills_borrowed_ = false;
};

// Has a connection of its own, so that ending it needs nobody's answer.
class TcpStore::Watch final : public KeyWatch {
 public:
  Watch(std::shared_ptr<Client> client, ConnectionPtr connection)
      : client_(std::move(client)), connection_(std::move(connection)) {}
  ~Watch() override {
    if (answered_ && !ended_) {
      client_->give_back(std::move(connection_));
    } else {
      connection_->say_goodbye();
    }
  }

  Outcome wait(Duration timeout) override {
    if (ended_) return Outcome::kEnded;
    if (answered_) return Outcome::kFound;
    auto response = connection_->receive(timeout, "watch");
    if (ended_) return Outcome::kEnded;
    if (!response) return Outcome::kTimeout;
    answered_ = true;
    Client::checked(std::move(*response));
    return Outcome::kFound;
  }

  void end() override {
    ended_ = true;
    connection_->interrupt();
  }

 private:
  std::shared_ptr<Client> client_;  // its options are the connection's
  ConnectionPtr connection_;
  bool answered_ = false;
  std::atomic<bool> ended_ = false;
};

TcpStore::TcpStore(Runtime& runtime, const TcpStoreOptions& options)
    : client_(std::make_shared<Client>(runtime, options)) {}

TcpStore::TcpStore(std::shared_ptr<Client> client, TimePoint deadline)
    : client_(std::move(client)), deadline_(deadline) {}

TcpStore::~TcpStore() = default;

void TcpStore::set(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  client_->call({.operation = Operation::kSet, .keys = {key}, .value = value}, "set", deadline_);
}

std::string TcpStore::get(const std::string& key, Duration timeout) {
  require_key(key);
  const Request request{.operation = Operation::kGet, .keys = {key}};
  return client_->wait(request, "get", timeout, deadline_).value;
}

std::optional<std::string> TcpStore::try_get(const std::string& key) {
  require_key(key);
  Response response =
      client_->call({.operation = Operation::kTryGet, .keys = {key}}, "try_get", deadline_);
  if (response.status == Status::kMissing) return std::nullopt;
  return std::move(response.value);
}

std::vector<std::optional<std::string>> TcpStore::multi_get(const std::vector<std::string>& keys) {
  require_keys(keys);
  const Request request{.operation = Operation::kMultiGet, .keys = keys};
  return client_->call(request, "multi_get", deadline_).values;
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t delta) {
  require_key(key);
  const Request request{.operation = Operation::kAdd, .keys = {key}, .delta = delta};
  return client_->call(request, "add", deadline_).number;
}

void TcpStore::append(const std::string& key, const std::string& bytes) {
  require_key(key);
  require_value(key, bytes);
  client_->call({.operation = Operation::kAppend, .keys = {key}, .value = bytes}, "append",
                deadline_);
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  require_key(key);
  require_value(key, desired);
  require_value(key, expected);
  const Request request{
      .operation = Operation::kCompareSet, .keys = {key}, .value = desired, .expected = expected};
  return client_->call(request, "compare_set", deadline_).value;
}

void TcpStore::wait(const std::vector<std::string>& keys, Duration timeout) {
  require_keys(keys);
  client_->wait({.operation = Operation::kWait, .keys = keys}, "wait", timeout, deadline_);
}

std::unique_ptr<KeyWatch> TcpStore::watch(const std::vector<std::string>& keys) {
  require_keys(keys);
  const Request request{.operation = Operation::kWaitAny, .keys = keys};
  return std::make_unique<Watch>(client_, client_->send(request, "watch", deadline_));
}

bool TcpStore::check(const std::vector<std::string>& keys) {
  require_keys(keys);
  const Request request{.operation = Operation::kCheck, .keys = keys};
  return client_->call(request, "check", deadline_).number != 0;
}

bool TcpStore::remove(const std::string& key) {
  require_key(key);
  const Request request{.operation = Operation::kRemove, .keys = {key}};
  return client_->call(request, "remove", deadline_).number != 0;
}

std::int64_t TcpStore::num_keys() {
  return client_->call({.operation = Operation::kNumKeys}, "num_keys", deadline_).number;
}

void TcpStore::set_last_will(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  client_->set_last_will({.operation = Operation::kSetLastWill, .keys = {key}, .value = value},
                         deadline_);
}

std::unique_ptr<Store> TcpStore::answering_by(TimePoint deadline) {
  return std::unique_ptr<Store>(new TcpStore(client_, deadline));
}

void TcpStore::die() { client_->die(); }

}  // namespace ddproof
