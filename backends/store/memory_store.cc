#include "backends/store/memory_store.h"

#include <utility>

#include "backends/api/error.h"

namespace ddproof {

// Shared with the table's callback, which may outlive a wait that failed.
struct MemoryStore::Arrival {
  explicit Arrival(Runtime& runtime) : monitor(runtime.make_monitor()) {}
  std::unique_ptr<Monitor> monitor;  // guards all below; taken after the server's lock
  bool arrived = false;
  std::string value;
};

// Leaves no waiter behind, also when the wait ends by an exception.
class MemoryStore::Parked {
 public:
  Parked(MemoryStoreServer& server, std::vector<std::string> keys, std::shared_ptr<Arrival> arrival,
         KeyValueTable::WaitFor wait_for)
      : server_(server) {
    MonitorLock lock(*server_.lock_);
    KeyValueTable& table = server_.table_;
    const bool all = wait_for == KeyValueTable::WaitFor::kAll;
    const auto arrive = [&table, key = keys.front(), all, arrival] {
      MonitorLock arrival_lock(*arrival->monitor);
      if (all) arrival->value = *table.try_get(key);
      arrival->arrived = true;
      arrival->monitor->notify_all();
    };
    waiter_ = table.when_present(std::move(keys), arrive, wait_for);
  }
  ~Parked() {
    MonitorLock lock(*server_.lock_);
    server_.table_.cancel(waiter_);
  }
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

 private:
  MemoryStoreServer& server_;
  KeyValueTable::Waiter waiter_ = 0;
};

class MemoryStore::Watch final : public KeyWatch {
 public:
  Watch(std::shared_ptr<MemoryStoreServer> server, Runtime& runtime,
        const std::vector<std::string>& keys)
      : server_(std::move(server)),
        runtime_(runtime),
        reason_("one of " + std::to_string(keys.size()) + " store keys"),
        arrival_(std::make_shared<Arrival>(runtime)),
        parked_(*server_, keys, arrival_, KeyValueTable::WaitFor::kAny) {}

  Outcome wait(Duration timeout) override {
    const TimePoint deadline = deadline_after(runtime_.now(), timeout);
    MonitorLock lock(*arrival_->monitor);
    bool in_time = true;
    while (!arrival_->arrived && !ended_ && in_time) {
      in_time = arrival_->monitor->wait(deadline, {reason_, CallSite::current(), {}, true});
    }
    if (ended_) return Outcome::kEnded;
    return arrival_->arrived ? Outcome::kFound : Outcome::kTimeout;
  }

  void end() override {
    MonitorLock lock(*arrival_->monitor);
    ended_ = true;
    arrival_->monitor->notify_all();
  }

 private:
  std::shared_ptr<MemoryStoreServer> server_;
  Runtime& runtime_;
  std::string reason_;
  bool ended_ = false;  // guarded by the arrival's monitor
  std::shared_ptr<Arrival> arrival_;
  Parked parked_;
};

MemoryStore::MemoryStore(std::shared_ptr<MemoryStoreServer> server, Runtime& runtime)
    : MemoryStore(std::move(server), runtime, std::make_shared<Wills>()) {}

MemoryStore::MemoryStore(std::shared_ptr<MemoryStoreServer> server, Runtime& runtime,
                         std::shared_ptr<Wills> wills)
    : server_(std::move(server)), runtime_(runtime), wills_(std::move(wills)) {}

void MemoryStore::set(const std::string& key, const std::string& value) {
  MonitorLock lock(*server_->lock_);
  server_->table_.set(key, value);
}

std::string MemoryStore::get(const std::string& key, Duration timeout) {
  return wait_for({key}, timeout);
}

std::optional<std::string> MemoryStore::try_get(const std::string& key) {
  require_key(key);
  MonitorLock lock(*server_->lock_);
  return server_->table_.try_get(key);
}

std::vector<std::optional<std::string>> MemoryStore::multi_get(
    const std::vector<std::string>& keys) {
  require_keys(keys);
  MonitorLock lock(*server_->lock_);
  return server_->table_.multi_get(keys);
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t delta) {
  require_key(key);
  MonitorLock lock(*server_->lock_);
  return server_->table_.add(key, delta);
}

void MemoryStore::append(const std::string& key, const std::string& bytes) {
  MonitorLock lock(*server_->lock_);
  server_->table_.append(key, bytes);
}

std::string MemoryStore::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  require_key(key);
  require_value(key, desired);
  MonitorLock lock(*server_->lock_);
  return server_->table_.compare_set(key, expected, desired);
}

void MemoryStore::wait(const std::vector<std::string>& keys, Duration timeout) {
  wait_for(keys, timeout);
}

std::string MemoryStore::wait_for(const std::vector<std::string>& keys, Duration timeout) {
  require_keys(keys);
  const TimePoint deadline = deadline_after(runtime_.now(), timeout);
  const auto arrival = std::make_shared<Arrival>(runtime_);
  const Parked parked(*server_, keys, arrival, KeyValueTable::WaitFor::kAll);
  const std::string reason = "store key \"" + keys[0] + "\"";
  {
    MonitorLock lock(*arrival->monitor);
    bool in_time = true;
    while (!arrival->arrived && in_time) {
      in_time = arrival->monitor->wait(deadline, {reason, CallSite::current(), {}});
    }
    if (arrival->arrived) return std::move(arrival->value);
  }
  MonitorLock lock(*server_->lock_);
  MonitorLock arrival_lock(*arrival->monitor);
  if (arrival->arrived) return std::move(arrival->value);  // it came between the two locks
  throw missing_key_error("store [in process]", *server_->table_.first_missing(keys), timeout);
}

std::unique_ptr<KeyWatch> MemoryStore::watch(const std::vector<std::string>& keys) {
  return std::make_unique<Watch>(server_, runtime_, keys);
}

bool MemoryStore::check(const std::vector<std::string>& keys) {
  require_keys(keys);
  MonitorLock lock(*server_->lock_);
  return server_->table_.check(keys);
}

bool MemoryStore::remove(const std::string& key) {
  require_key(key);
  MonitorLock lock(*server_->lock_);
  return server_->table_.remove(key);
}

std::int64_t MemoryStore::num_keys() {
  MonitorLock lock(*server_->lock_);
  return server_->table_.num_keys();
}

void MemoryStore::set_last_will(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  MonitorLock lock(*server_->lock_);
  wills_->insert_or_assign(key, value);
}

std::unique_ptr<Store> MemoryStore::answering_by(TimePoint) {
  // It always answers at once.
  return std::unique_ptr<Store>(new MemoryStore(server_, runtime_, wills_));
}

void MemoryStore::die() {
  MonitorLock lock(*server_->lock_);
  for (const auto& [key, value] : std::exchange(*wills_, {})) server_->table_.set(key, value);
}

}  // namespace ddproof
