// A store within one process: a MemoryStoreServer holds the contents, each rank has a MemoryStore.
// Works on the operating system's Runtime and on simulated ranks alike: a rank waits in a Monitor
// of its own Runtime, and whoever sets the key wakes it. No polling.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"
#include "backends/store/key_value_table.h"

namespace ddproof {

// Threads: used from any task of any rank, through MemoryStore.
class MemoryStoreServer {
 public:
  // `runtime` must outlive the server; in a simulation, any rank's.
  explicit MemoryStoreServer(Runtime& runtime) : lock_(runtime.make_monitor()) {}

 private:
  friend class MemoryStore;
  std::unique_ptr<Monitor> lock_;  // guards table_; nobody waits or switches while holding it
  KeyValueTable table_;
};

class MemoryStore : public Store {
 public:
  // `runtime`, which must outlive this, is that of the rank that uses it.
  MemoryStore(std::shared_ptr<MemoryStoreServer> server, Runtime& runtime);
  ~MemoryStore() override = default;

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

  // This client's process died: carries out its last wills. Destroying the store instead is a
  // goodbye.
  void die();

 private:
  using Wills = std::map<std::string, std::string>;  // value by key
  struct Arrival;
  class Parked;
  class Watch;
  MemoryStore(std::shared_ptr<MemoryStoreServer> server, Runtime& runtime,
              std::shared_ptr<Wills> wills);
  // Returns the value of the first key at the moment when all existed.
  std::string wait_for(const std::vector<std::string>& keys, Duration timeout);

  std::shared_ptr<MemoryStoreServer> server_;
  Runtime& runtime_;
  std::shared_ptr<Wills> wills_;  // guarded by the server's lock
};

}  // namespace ddproof
