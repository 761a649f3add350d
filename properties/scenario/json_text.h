// A JSON document with its file's name, and the lines on which its objects begin.
//
// Immutable. Threads: any.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ddproof::scenario {

using Json = nlohmann::ordered_json;

class JsonText {
 public:
  // `file` is what messages call it. Throws ConfigError when the text is too large, too deeply
  // nested, empty, no JSON (with the line and column), or has an object with one key twice.
  JsonText(std::string_view text, std::string file);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const Json& value() const { return value_; }
  const std::string& file() const { return file_; }
  // The first is 1. Requires: `object` is an object of value().
  int line_of(const Json& object) const { return lines_.at(&object); }

 private:
  std::string file_;
  Json value_;
  std::unordered_map<const Json*, int> lines_;
};

}  // namespace ddproof::scenario
