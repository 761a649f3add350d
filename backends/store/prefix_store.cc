#include "backends/store/prefix_store.h"

namespace ddproof {

std::string PrefixStore::full(const std::string& key) const { return prefix_ + key; }

std::vector<std::string> PrefixStore::full(const std::vector<std::string>& keys) const {
  std::vector<std::string> result;
  for (const std::string& key : keys) result.push_back(full(key));
  return result;
}

void PrefixStore::set(const std::string& key, const std::string& value) {
  inner_.set(full(key), value);
}

std::string PrefixStore::get(const std::string& key, Duration timeout) {
  return inner_.get(full(key), timeout);
}

std::optional<std::string> PrefixStore::try_get(const std::string& key) {
  return inner_.try_get(full(key));
}

std::vector<std::optional<std::string>> PrefixStore::multi_get(
    const std::vector<std::string>& keys) {
  return inner_.multi_get(full(keys));
}

std::int64_t PrefixStore::add(const std::string& key, std::int64_t delta) {
  return inner_.add(full(key), delta);
}

void PrefixStore::append(const std::string& key, const std::string& bytes) {
  inner_.append(full(key), bytes);
}

std::string PrefixStore::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  return inner_.compare_set(full(key), expected, desired);
}

void PrefixStore::wait(const std::vector<std::string>& keys, Duration timeout) {
  inner_.wait(full(keys), timeout);
}

std::unique_ptr<KeyWatch> PrefixStore::watch(const std::vector<std::string>& keys) {
  return inner_.watch(full(keys));
}

bool PrefixStore::check(const std::vector<std::string>& keys) { return inner_.check(full(keys)); }

bool PrefixStore::remove(const std::string& key) { return inner_.remove(full(key)); }

std::int64_t PrefixStore::num_keys() { return inner_.num_keys(); }

void PrefixStore::set_last_will(const std::string& key, const std::string& value) {
  inner_.set_last_will(full(key), value);
}

std::unique_ptr<Store> PrefixStore::answering_by(TimePoint deadline) {
  return std::unique_ptr<Store>(new PrefixStore(inner_.answering_by(deadline), prefix_));
}

}  // namespace ddproof
