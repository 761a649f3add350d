// A part of a store: the keys that begin with "PREFIX/", under their names without it. Parts with
// different prefixes know nothing of each other.
//
// num_keys() and the errors are those of the whole store: they count and name all keys in full.
// Threads: as the other store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/store.h"

namespace ddproof {

class PrefixStore final : public Store {
 public:
  // `inner` must outlive this. What a store says of keys holds for PREFIX/KEY.
  PrefixStore(Store& inner, const std::string& prefix) : inner_(inner), prefix_(prefix + "/") {}

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

 private:
  PrefixStore(std::unique_ptr<Store> inner, std::string prefix)
      : owned_(std::move(inner)), inner_(*owned_), prefix_(std::move(prefix)) {}
  std::string full(const std::string& key) const;
  std::vector<std::string> full(const std::vector<std::string>& keys) const;

  std::unique_ptr<Store> owned_;  // only of answering_by()
  Store& inner_;
  std::string prefix_;
};

}  // namespace ddproof
