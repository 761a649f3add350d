// A place in a JSON document, for readers whose errors name it: what was found there, and what is
// allowed.
//
// Every error is ConfigError, one line: "FILE: PATH is FOUND; allowed: ...".
// Values that borrow: the text must outlive them. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/time.h"
#include "properties/scenario/json_text.h"

namespace ddproof::scenario {

class JsonNode {
 public:
  // The document itself.
  explicit JsonNode(const JsonText& text) : JsonNode(text.value(), text, "") {}

  // "FILE: PATH ".
  [[noreturn]] void fail(const std::string& what) const;
  // "FILE: PATH is FOUND; allowed: ...".
  [[noreturn]] void refuse(const std::string& allowed) const;

  // Where this object begins in the file. Requires: it is an object.
  int line() const;
  bool is_text() const { return value_->is_string(); }
  bool is_list() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  bool boolean() const;
  std::string text() const;  // not empty
  // Nothing where no whole number of 64 bits stands.
  std::optional<std::int64_t> whole_number() const;
  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  // A number, or "inf", "-inf", "nan".
  double number() const;
  // "1801 s", "2.5 ms": a decimal number and ns, us, ms, s, min or h; at most 1,000,000 h.
  Duration duration() const;
  Duration positive_duration() const;  // the same, more than 0
  std::vector<JsonNode> elements() const;
  // The position in `allowed` of the text that stands here.
  std::size_t choice(const std::vector<std::string>& allowed) const;

 private:
  friend class JsonObject;
  JsonNode(const Json& value, const JsonText& text, std::string path)
      : value_(&value), text_(&text), path_(std::move(path)) {}

  const Json* value_;
  const JsonText* text_;
  std::string path_;
};

// The members of an object. Asking for a key makes it known; finish() refuses all others.
class JsonObject {
 public:
  // Throws when `node` is no object.
  explicit JsonObject(const JsonNode& node);

  std::optional<JsonNode> find(const std::string& key);
  JsonNode require(const std::string& key);
  // All members, in the document's order; every key is then known.
  std::vector<std::pair<std::string, JsonNode>> members();
  const JsonNode& node() const { return node_; }
  // Throws when a key was not asked for.
  void finish() const;

 private:
  JsonNode member(const std::string& key, const Json& value) const;

  JsonNode node_;
  std::vector<std::string> known_;
};

}  // namespace ddproof::scenario
