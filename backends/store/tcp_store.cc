#include "backends/store/tcp_store.h"

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

// The connections, and one call on one of them.
class TcpStore::Client {
 public:
  Client(Runtime& runtime, const TcpStoreOptions& options)
      : runtime_(runtime), options_(options), monitor_(runtime.make_monitor()) {
    idle_.push_back(connect_until(deadline_after(runtime_.now(), options_.connect_timeout)));
  }

  ~Client() {
    for (const ConnectionPtr& connection : idle_) connection->say_goodbye();
    if (will_) will_->say_goodbye();
  }

  Response call(const Request& request, const std::string& name) {
    ConnectionPtr connection = take();
    Response response = exchange(*connection, request, name);
    give_back(std::move(connection));
    return checked(std::move(response));
  }

  // As call(), but waits for the answer up to `timeout`.
  Response wait(const Request& request, const std::string& name, Duration timeout) {
    ConnectionPtr connection = take();
    connection->send(request, name);
    auto response = connection->receive(timeout, name);
    if (!response) {
      connection->send({.operation = Operation::kCancel}, name);
      response = answer(*connection, name);
    }
    give_back(std::move(connection));
    if (response->status == Status::kCancelled) {
      throw missing_key_error(describe_store(options_), response->value, timeout);
    }
    return checked(std::move(*response));
  }

  void set_last_will(const Request& request) {
    MonitorLock lock(*monitor_);
    if (!will_) will_ = connect_again();
    checked(exchange(*will_, request, "set_last_will"));
  }

  void die() {
    idle_.clear();
    will_.reset();
  }

 private:
  ConnectionPtr connect_until(TimePoint deadline) {
    Duration pause = std::chrono::milliseconds(5);
    while (true) {
      std::string why;
      try {
        return std::make_unique<StoreConnection>(options_, deadline - runtime_.now());
      } catch (const StoreConnection::ConnectFailed& failure) {
        why = failure.why;
      }
      if (runtime_.now() + pause >= deadline) {
        throw CommError(CommErrorKind::kTimeout,
                        describe_store(options_) + ": cannot be reached (" + why +
                            "); see whether the process that hosts the store runs, and check "
                            "MASTER_ADDR and MASTER_PORT");
      }
      runtime_.sleep_for(pause);
      pause = std::min<Duration>(pause * 2, std::chrono::milliseconds(200));
    }
  }

  // One more connection to a server that was there: no second try.
  ConnectionPtr connect_again() {
    try {
      return std::make_unique<StoreConnection>(options_, options_.answer_timeout);
    } catch (const StoreConnection::ConnectFailed& failure) {
      throw CommError(CommErrorKind::kPeerLost,
                      describe_store(options_) + ": cannot be reached any more (" + failure.why +
                          "); see whether the process that hosts the store is alive");
    }
  }

  ConnectionPtr take() {
    {
      MonitorLock lock(*monitor_);
      if (!idle_.empty()) {
        ConnectionPtr connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    return connect_again();
  }

  void give_back(ConnectionPtr connection) {
    MonitorLock lock(*monitor_);
    idle_.push_back(std::move(connection));
  }

  Response answer(StoreConnection& connection, const std::string& name) {
    auto response = connection.receive(options_.answer_timeout, name);
    if (response) return std::move(*response);
    throw CommError(CommErrorKind::kPeerLost,
                    describe_store(options_) + " " + name + ": the server does not answer" +
                        "; see whether the process that hosts the store is alive");
  }

  Response exchange(StoreConnection& connection, const Request& request, const std::string& name) {
    connection.send(request, name);
    return answer(connection, name);
  }

  static Response checked(Response response) {
    if (response.status == Status::kRefused) throw ConfigError(response.value);
    return response;
  }

  Runtime& runtime_;
  const TcpStoreOptions options_;
  std::unique_ptr<Monitor> monitor_;  // guards idle_ and will_
  std::vector<ConnectionPtr> idle_;
  ConnectionPtr will_;
};

TcpStore::TcpStore(Runtime& runtime, const TcpStoreOptions& options)
    : client_(std::make_unique<Client>(runtime, options)) {}

TcpStore::~TcpStore() = default;

void TcpStore::set(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  client_->call({.operation = Operation::kSet, .keys = {key}, .value = value}, "set");
}

std::string TcpStore::get(const std::string& key, Duration timeout) {
  require_key(key);
  return client_->wait({.operation = Operation::kGet, .keys = {key}}, "get", timeout).value;
}

std::optional<std::string> TcpStore::try_get(const std::string& key) {
  require_key(key);
  Response response = client_->call({.operation = Operation::kTryGet, .keys = {key}}, "try_get");
  if (response.status == Status::kMissing) return std::nullopt;
  return std::move(response.value);
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t delta) {
  require_key(key);
  return client_->call({.operation = Operation::kAdd, .keys = {key}, .delta = delta}, "add").number;
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  require_key(key);
  require_value(key, desired);
  require_value(key, expected);
  return client_
      ->call({.operation = Operation::kCompareSet,
              .keys = {key},
              .value = desired,
              .expected = expected},
             "compare_set")
      .value;
}

void TcpStore::wait(const std::vector<std::string>& keys, Duration timeout) {
  require_keys(keys);
  client_->wait({.operation = Operation::kWait, .keys = keys}, "wait", timeout);
}

bool TcpStore::check(const std::vector<std::string>& keys) {
  require_keys(keys);
  return client_->call({.operation = Operation::kCheck, .keys = keys}, "check").number != 0;
}

bool TcpStore::remove(const std::string& key) {
  require_key(key);
  return client_->call({.operation = Operation::kRemove, .keys = {key}}, "remove").number != 0;
}

std::int64_t TcpStore::num_keys() {
  return client_->call({.operation = Operation::kNumKeys}, "num_keys").number;
}

void TcpStore::set_last_will(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  client_->set_last_will({.operation = Operation::kSetLastWill, .keys = {key}, .value = value});
}

void TcpStore::die() { client_->die(); }

}  // namespace ddproof
