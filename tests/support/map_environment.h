// Environment variables that a test chose.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof {

class MapEnvironment final : public Environment {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  MapEnvironment() = default;
  explicit MapEnvironment(Variables variables) : variables_(std::move(variables)) {}

  std::optional<std::string> get(std::string_view name) const override {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string> all() const override {
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables_) entries.push_back(name + "=" + value);
    return entries;
  }

 private:
  Variables variables_;
};

}  // namespace ddproof
