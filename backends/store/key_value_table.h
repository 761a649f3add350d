// The contents of a store: keys, values, and who waits for which key. Shared by every store, so
// that all of them answer alike.
//
// Invariants: a waiter is called exactly once, when all of its keys exist at the same moment (or
// any of them, as it asked for), unless it is cancelled first. Sizes stay within the limits below.
// Threads: none of its own; the owner guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/time.h"

namespace ddproof {

// What a store refuses with ConfigError, in every implementation.
inline constexpr std::size_t kKeyBytesMax = 4 * 1024;
inline constexpr std::size_t kValueBytesMax = 16 * 1024 * 1024;
inline constexpr std::size_t kWaitKeysMax = 64 * 1024;

// Throw ConfigError naming the size and the limit.
void require_key(const std::string& key);
void require_value(const std::string& key, const std::string& value);
void require_keys(const std::vector<std::string>& keys);

class KeyValueTable {
 public:
  using Waiter = std::uint64_t;
  enum class WaitFor { kAll, kAny };

  // Calls the waiters that this completes before it returns.
  void set(const std::string& key, const std::string& value);
  std::optional<std::string> try_get(const std::string& key) const;
  // As Store::multi_get; throws ConfigError.
  std::vector<std::optional<std::string>> multi_get(const std::vector<std::string>& keys) const;
  // As Store::add; throws ConfigError.
  std::int64_t add(const std::string& key, std::int64_t delta);
  // As Store::append; throws ConfigError.
  void append(const std::string& key, const std::string& bytes);
  // As Store::compare_set.
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  bool check(const std::vector<std::string>& keys) const;
  bool remove(const std::string& key);
  std::int64_t num_keys() const { return static_cast<std::int64_t>(values_.size()); }

  // Calls `ready` as soon as all of the keys exist, or any: within this call, or within the set()
  // that makes it so. `ready` must not change this table. Requires: 1 to kWaitKeysMax keys.
  Waiter when_present(std::vector<std::string> keys, std::function<void()> ready,
                      WaitFor wait_for = WaitFor::kAll);
  // The waiter will not be called any more; fine when it was called already.
  void cancel(Waiter waiter);
  // The first key that is missing; empty when there is none.
  std::optional<std::string> first_missing(const std::vector<std::string>& keys) const;

 private:
  struct Waiting {
    std::vector<std::string> keys;
    std::function<void()> ready;
    WaitFor wait_for = WaitFor::kAll;
  };
  // Who waits for all keys is parked at one that is missing; when that key comes, it is called, or
  // parked at another one. Who waits for any is parked at each. So a set() looks only at those that
  // may go on.
  void park_or_call(Waiter waiter);
  // Takes it from wherever it is parked.
  void unpark(Waiter waiter, const std::vector<std::string>& keys);
  bool any_present(const std::vector<std::string>& keys) const;

  std::map<std::string, std::string> values_;
  std::map<Waiter, Waiting> waiting_;
  std::map<std::string, std::set<Waiter>> parked_;
  Waiter next_waiter_ = 1;
};

// The error of a wait that passed its timeout: "WHO: key "K" was not set within 5 s; ...".
CommError missing_key_error(const std::string& who, const std::string& key, Duration timeout);

}  // namespace ddproof
