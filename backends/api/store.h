// A small shared key-value store: how ranks find each other and learn who is gone.
//
// Keys and values are bytes. Every method is atomic and may be called from any task of its rank.
// Implementations (backends/store): TCP client and server, and in one process.
// Errors: CommError{kTimeout} when a wait passes its timeout (the text names the key),
// CommError{kPeerLost} when the server is gone (the text names its address).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/time.h"

namespace ddproof {

// A wait for the first of some keys. One task waits; any task of the rank may end it.
class KeyWatch {
 public:
  enum class Outcome { kFound, kEnded, kTimeout };

  virtual ~KeyWatch() = default;
  // kFound once one of the keys exists, from then on; kEnded after end(). After kTimeout it may be
  // called again.
  virtual Outcome wait(Duration timeout) = 0;
  // Ends wait(), now or later. Never waits for the server, never throws.
  virtual void end() = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key, then returns its value.
  virtual std::string get(const std::string& key, Duration timeout) = 0;
  // The value, or empty at once when there is none.
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  // The value of each key, in order, all at the same moment; at once, empty for a missing one.
  // Throws ConfigError when the values together are larger than one value may be.
  virtual std::vector<std::optional<std::string>> multi_get(
      const std::vector<std::string>& keys) = 0;
  // Adds to a decimal number (missing counts as 0) and returns the sum. Throws ConfigError when the
  // value is not a number or the sum leaves 63 bits; the value then stays as it was.
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;
  // Sets the key to `desired` when its value is `expected`, or, with an empty `expected`, when it
  // is missing. Returns the value afterwards; empty string when the key is still missing.
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) = 0;
  // Adds `bytes` at the end of the value (missing counts as empty). Throws ConfigError when it
  // would be larger than a value may be; it then stays as it was.
  virtual void append(const std::string& key, const std::string& bytes) = 0;
  // Returns when all keys exist.
  virtual void wait(const std::vector<std::string>& keys, Duration timeout) = 0;
  // Begins to watch for the first of `keys`; see KeyWatch. Must not outlive the store.
  virtual std::unique_ptr<KeyWatch> watch(const std::vector<std::string>& keys) = 0;
  virtual bool check(const std::vector<std::string>& keys) = 0;
  // True when the key existed.
  virtual bool remove(const std::string& key) = 0;
  virtual std::int64_t num_keys() = 0;
  // The store sets `key` to `value` when this client goes away without a goodbye (its process
  // died). Destroying the Store is a goodbye. A client may have several wills, one per key: a
  // second one for the same key replaces the first.
  virtual void set_last_will(const std::string& key, const std::string& value) = 0;

  // This store, for calls that must not take long: one that the server has not answered by
  // `deadline` throws CommError{kPeerLost}. The timeouts of get() and wait() stay as they are.
  // Shares everything with this store, also the last wills; must not outlive it.
  virtual std::unique_ptr<Store> answering_by(TimePoint deadline) = 0;
};

}  // namespace ddproof
