// A store that calls a hook before each call: to count them, to hold them back, to refuse them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/store.h"

namespace ddproof {

class HookedStore : public Store {
 public:
  // Told by when the store has to answer; kForever: any time.
  using Hook = std::function<void(TimePoint deadline)>;

  // `inner` must outlive this.
  HookedStore(Store& inner, Hook hook) : HookedStore(nullptr, inner, std::move(hook), kForever) {}

  void set(const std::string& key, const std::string& value) override { hooked().set(key, value); }
  std::string get(const std::string& key, Duration timeout) override {
    return hooked().get(key, timeout);
  }
  std::optional<std::string> try_get(const std::string& key) override {
    return hooked().try_get(key);
  }
  std::vector<std::optional<std::string>> multi_get(const std::vector<std::string>& keys) override {
    return hooked().multi_get(keys);
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return hooked().add(key, delta);
  }
  void append(const std::string& key, const std::string& bytes) override {
    hooked().append(key, bytes);
  }
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override {
    return hooked().compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Duration timeout) override {
    hooked().wait(keys, timeout);
  }
  std::unique_ptr<KeyWatch> watch(const std::vector<std::string>& keys) override {
    return hooked().watch(keys);
  }
  bool check(const std::vector<std::string>& keys) override { return hooked().check(keys); }
  bool remove(const std::string& key) override { return hooked().remove(key); }
  std::int64_t num_keys() override { return hooked().num_keys(); }
  void set_last_will(const std::string& key, const std::string& value) override {
    hooked().set_last_will(key, value);
  }
  std::unique_ptr<Store> answering_by(TimePoint deadline) override {
    std::unique_ptr<Store> inner = inner_.answering_by(deadline);
    Store& store = *inner;
    return std::unique_ptr<Store>(new HookedStore(std::move(inner), store, hook_, deadline));
  }

 private:
  HookedStore(std::unique_ptr<Store> owned, Store& inner, Hook hook, TimePoint deadline)
      : owned_(std::move(owned)), inner_(inner), hook_(std::move(hook)), deadline_(deadline) {}

  Store& hooked() {
    hook_(deadline_);
    return inner_;
  }

  std::unique_ptr<Store> owned_;
  Store& inner_;
  Hook hook_;
  TimePoint deadline_;
};

}  // namespace ddproof
