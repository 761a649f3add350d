#include "backends/store/key_value_table.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

// Keys and values may be long or binary; a message shows the start.
std::string quote(const std::string& bytes) {
  constexpr std::size_t kShown = 80;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShown)) text += (c >= ' ' && c <= '~') ? c : '?';
  return text + (bytes.size() > kShown ? "...\"" : "\"");
}

std::optional<std::int64_t> parse_number(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

void require_key(const std::string& key) {
  if (!key.empty() && key.size() <= kKeyBytesMax) return;
  throw ConfigError("store: key " + quote(key) + " has " + std::to_string(key.size()) +
                    " bytes, allowed are 1 to " + std::to_string(kKeyBytesMax));
}

void require_value(const std::string& key, const std::string& value) {
  if (value.size() <= kValueBytesMax) return;
  throw ConfigError("store: the value for key " + quote(key) + " has " +
                    std::to_string(value.size()) + " bytes, allowed are 0 to " +
                    std::to_string(kValueBytesMax));
}

void require_keys(const std::vector<std::string>& keys) {
  if (keys.empty() || keys.size() > kWaitKeysMax) {
    throw ConfigError("store: a call names " + std::to_string(keys.size()) +
                      " keys, allowed are 1 to " + std::to_string(kWaitKeysMax));
  }
  for (const std::string& key : keys) require_key(key);
}

void KeyValueTable::set(const std::string& key, const std::string& value) {
  require_key(key);
  require_value(key, value);
  values_.insert_or_assign(key, value);
  const auto parked = parked_.extract(key);
  if (parked.empty()) return;
  for (const Waiter waiter : parked.mapped()) park_or_call(waiter);
}

std::optional<std::string> KeyValueTable::try_get(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::optional<std::string>> KeyValueTable::multi_get(
    const std::vector<std::string>& keys) const {
  std::vector<std::optional<std::string>> values;
  std::size_t bytes = 0;
  for (const std::string& key : keys) {
    values.push_back(try_get(key));
    bytes += values.back() ? values.back()->size() : 0;
    if (bytes > kValueBytesMax) {
      throw ConfigError("store: multi_get of " + std::to_string(keys.size()) + " keys from " +
                        quote(keys.front()) + " would return more than " +
                        std::to_string(kValueBytesMax) + " bytes; ask for fewer keys at once");
    }
  }
  return values;
}

std::int64_t KeyValueTable::add(const std::string& key, std::int64_t delta) {
  const std::string value = try_get(key).value_or("0");
  const std::string call = "store: add " + std::to_string(delta) + " to key " + quote(key) + ": ";
  const std::optional<std::int64_t> number = parse_number(value);
  if (!number) {
    throw ConfigError(call + "the value is " + quote(value) +
                      ", allowed is a decimal number of 64 bits; the value stays as it was");
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*number, delta, &sum)) {
    throw ConfigError(call + "the value is " + value +
                      " and the sum leaves 64 bits; the value stays as it was");
  }
  set(key, std::to_string(sum));
  return sum;
}

void KeyValueTable::append(const std::string& key, const std::string& bytes) {
  set(key, try_get(key).value_or("") + bytes);
}

std::string KeyValueTable::compare_set(const std::string& key, const std::string& expected,
                                       const std::string& desired) {
  const std::optional<std::string> value = try_get(key);
  if (value ? *value != expected : !expected.empty()) return value.value_or("");
  set(key, desired);
  return desired;
}

bool KeyValueTable::check(const std::vector<std::string>& keys) const {
  return !first_missing(keys).has_value();
}

bool KeyValueTable::remove(const std::string& key) { return values_.erase(key) > 0; }

std::optional<std::string> KeyValueTable::first_missing(
    const std::vector<std::string>& keys) const {
  const auto missing =
      std::ranges::find_if(keys, [this](const std::string& key) { return !values_.contains(key); });
  if (missing == keys.end()) return std::nullopt;
  return *missing;
}

bool KeyValueTable::any_present(const std::vector<std::string>& keys) const {
  return std::ranges::any_of(keys,
                             [this](const std::string& key) { return values_.contains(key); });
}

KeyValueTable::Waiter KeyValueTable::when_present(std::vector<std::string> keys,
                                                  std::function<void()> ready, WaitFor wait_for) {
  require_keys(keys);
  const Waiter waiter = next_waiter_++;
  waiting_.emplace(waiter, Waiting{std::move(keys), std::move(ready), wait_for});
  park_or_call(waiter);
  return waiter;
}

void KeyValueTable::park_or_call(Waiter waiter) {
  const auto entry = waiting_.find(waiter);
  DDPROOF_CHECK(entry != waiting_.end());
  const std::vector<std::string>& keys = entry->second.keys;
  if (entry->second.wait_for == WaitFor::kAll) {
    if (const auto missing = first_missing(keys)) {
      parked_[*missing].insert(waiter);
      return;
    }
  } else {
    if (!any_present(keys)) {
      for (const std::string& key : keys) parked_[key].insert(waiter);
      return;
    }
    unpark(waiter, keys);
  }
  const auto ready = std::move(entry->second.ready);
  waiting_.erase(entry);
  ready();
}

void KeyValueTable::cancel(Waiter waiter) {
  const auto entry = waiting_.find(waiter);
  if (entry == waiting_.end()) return;
  unpark(waiter, entry->second.keys);
  waiting_.erase(entry);
}

void KeyValueTable::unpark(Waiter waiter, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto parked = parked_.find(key);
    if (parked == parked_.end()) continue;
    parked->second.erase(waiter);
    if (parked->second.empty()) parked_.erase(parked);
  }
}

CommError missing_key_error(const std::string& who, const std::string& key, Duration timeout) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.6g s", std::chrono::duration<double>(timeout).count());
  return CommError(CommErrorKind::kTimeout,
                   who + ": key " + quote(key) + " was not set within " + seconds +
                       "; see whether the rank that sets it is alive, or wait longer");
}

}  // namespace ddproof
