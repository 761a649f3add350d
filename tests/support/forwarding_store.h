// A store that passes every call to another one: tests override what shall go wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/store.h"

namespace ddproof {

class ForwardingStore : public Store {
 public:
  // `inner` must outlive this.
  explicit ForwardingStore(Store& inner) : inner_(inner) {}

  void set(const std::string& key, const std::string& value) override { inner().set(key, value); }
  std::string get(const std::string& key, Duration timeout) override {
    return inner().get(key, timeout);
  }
  std::optional<std::string> try_get(const std::string& key) override {
    return inner().try_get(key);
  }
  std::vector<std::optional<std::string>> multi_get(const std::vector<std::string>& keys) override {
    return inner().multi_get(keys);
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return inner().add(key, delta);
  }
  void append(const std::string& key, const std::string& bytes) override {
    inner().append(key, bytes);
  }
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override {
    return inner().compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Duration timeout) override {
    inner().wait(keys, timeout);
  }
  std::unique_ptr<KeyWatch> watch(const std::vector<std::string>& keys) override {
    return inner().watch(keys);
  }
  bool check(const std::vector<std::string>& keys) override { return inner().check(keys); }
  bool remove(const std::string& key) override { return inner().remove(key); }
  std::int64_t num_keys() override { return inner().num_keys(); }
  void set_last_will(const std::string& key, const std::string& value) override {
    inner().set_last_will(key, value);
  }
  std::unique_ptr<Store> answering_by(TimePoint deadline) override {
    return inner().answering_by(deadline);
  }

 protected:
  // Where a call goes; asked once for each.
  virtual Store& inner() { return inner_; }

 private:
  Store& inner_;
};

}  // namespace ddproof
