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

  void set(const std::string& key, const std::string& value) override { inner_.set(key, value); }
  std::string get(const std::string& key, Duration timeout) override {
    return inner_.get(key, timeout);
  }
  std::optional<std::string> try_get(const std::string& key) override {
    return inner_.try_get(key);
  }
  std::vector<std::optional<std::string>> multi_get(const std::vector<std::string>& keys) override {
    return inner_.multi_get(keys);
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return inner_.add(key, delta);
  }
  void append(const std::string& key, const std::string& bytes) override {
    inner_.append(key, bytes);
  }
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override {
    return inner_.compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Duration timeout) override {
    inner_.wait(keys, timeout);
  }
  std::unique_ptr<KeyWatch> watch(const std::vector<std::string>& keys) override {
    return inner_.watch(keys);
  }
  bool check(const std::vector<std::string>& keys) override { return inner_.check(keys); }
  bool remove(const std::string& key) override { return inner_.remove(key); }
  std::int64_t num_keys() override { return inner_.num_keys(); }
  void set_last_will(const std::string& key, const std::string& value) override {
    inner_.set_last_will(key, value);
  }
  std::unique_ptr<Store> answering_by(TimePoint deadline) override {
    return inner_.answering_by(deadline);
  }

 private:
  Store& inner_;
};

}  // namespace ddproof
