#include "properties/scenario/json_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "backends/api/error.h"
#include "backends/api/suggest.h"

namespace ddproof::scenario {
namespace {

constexpr std::size_t kShownMax = 60;

// A value in one short line.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

constexpr Unit kUnits[] = {{"ns", 1},
                           {"us", 1'000},
                           {"ms", 1'000'000},
                           {"s", 1'000'000'000},
                           {"min", 60'000'000'000},
                           {"h", 3'600'000'000'000}};
constexpr std::int64_t kHoursMax = 1'000'000;

// Exact: digits before and after a point, times the unit; what is below a nanosecond is refused.
std::optional<Duration> parse_duration(std::string_view text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto unit = std::ranges::find(kUnits, text.substr(space + 1), &Unit::name);
  if (unit == std::end(kUnits)) return std::nullopt;
  __int128 value = 0;  // times `scale`
  std::int64_t scale = 1;
  bool after_point = false;
  bool has_digit = false;
  for (const char c : text.substr(0, space)) {
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9' || value > kHoursMax * kUnits[5].nanoseconds) return std::nullopt;
    has_digit = true;
    value = value * 10 + (c - '0');
    if (after_point && (scale *= 10) > 1'000'000'000'000) return std::nullopt;
  }
  const __int128 scaled = value * unit->nanoseconds;
  if (!has_digit || scaled % scale != 0) return std::nullopt;
  if (scaled / scale > kHoursMax * kUnits[5].nanoseconds) return std::nullopt;
  return Duration(static_cast<std::int64_t>(scaled / scale));
}

bool is_plain_name(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

}  // namespace

void JsonNode::fail(const std::string& what) const {
  throw ConfigError(
      fmt::format("{}: {} {}", text_->file(), path_.empty() ? "the scenario" : path_, what));
}

void JsonNode::refuse(const std::string& allowed) const {
  fail(fmt::format("is {}; allowed: {}", shown(*value_), allowed));
}

int JsonNode::line() const { return text_->line_of(*value_); }

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::string JsonNode::text() const {
  if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) {
    refuse("a text that is not empty");
  }
  const auto text = value_->get<std::string>();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(text, is_control)) fail("has a control character");
  return text;
}

std::optional<std::int64_t> JsonNode::whole_number() const {
  if (!value_->is_number_integer()) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > kMost) return std::nullopt;
  return value_->get<std::int64_t>();
}

std::int64_t JsonNode::whole(std::int64_t low, std::int64_t high) const {
  const std::optional<std::int64_t> value = whole_number();
  if (!value || *value < low || *value > high) refuse(fmt::format("{} to {}", low, high));
  return *value;
}

double JsonNode::number() const {
  if (value_->is_number()) return value_->get<double>();
  if (*value_ == "inf") return std::numeric_limits<double>::infinity();
  if (*value_ == "-inf") return -std::numeric_limits<double>::infinity();
  if (*value_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  refuse("a number, \"inf\", \"-inf\" or \"nan\"");
}

Duration JsonNode::duration() const {
  if (value_->is_string()) {
    if (const auto parsed = parse_duration(value_->get_ref<const std::string&>())) return *parsed;
  }
  refuse(
      "a number of 0 or more and a unit, as in \"1801 s\"; units: ns, us, ms, s, min, h; at most "
      "1000000 h");
}

Duration JsonNode::positive_duration() const {
  const Duration result = duration();
  if (result == Duration::zero()) refuse("more than 0");
  return result;
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) refuse("a list");
  std::vector<JsonNode> result;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    result.push_back({(*value_)[i], *text_, fmt::format("{}[{}]", path_, i)});
  }
  return result;
}

std::size_t JsonNode::choice(const std::vector<std::string>& allowed) const {
  const auto found = value_->is_string()
                         ? std::ranges::find(allowed, value_->get_ref<const std::string&>())
                         : allowed.end();
  if (found == allowed.end()) {
    refuse(
        fmt::format("{}{}", fmt::join(allowed, ", "),
                    value_->is_string() ? did_you_mean(value_->get<std::string>(), allowed) : ""));
  }
  return static_cast<std::size_t>(found - allowed.begin());
}

JsonObject::JsonObject(const JsonNode& node) : node_(node) {
  if (!node.value_->is_object()) node.refuse("an object");
}

JsonNode JsonObject::member(const std::string& key, const Json& value) const {
  const std::string shown_key = is_plain_name(key) ? key : Json(key).dump();
  return {value, *node_.text_, node_.path_.empty() ? shown_key : node_.path_ + "." + shown_key};
}

std::optional<JsonNode> JsonObject::find(const std::string& key) {
  known_.push_back(key);
  const auto found = node_.value_->find(key);
  if (found == node_.value_->end()) return std::nullopt;
  return member(key, *found);
}

JsonNode JsonObject::require(const std::string& key) {
  if (auto found = find(key)) return *found;
  for (const auto& [other, value] : node_.value_->items()) {
    if (std::ranges::find(known_, other) != known_.end()) continue;
    const std::string meant = did_you_mean(other, {key});
    if (!meant.empty()) member(other, value).fail("is not known" + meant);
  }
  node_.fail("lacks \"" + key + "\"");
}

std::vector<std::pair<std::string, JsonNode>> JsonObject::members() {
  std::vector<std::pair<std::string, JsonNode>> result;
  for (const auto& [key, value] : node_.value_->items()) {
    known_.push_back(key);
    result.emplace_back(key, member(key, value));
  }
  return result;
}

void JsonObject::finish() const {
  for (const auto& [key, value] : node_.value_->items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    member(key, value)
        .fail(fmt::format("is not known; allowed: {}{}", fmt::join(known_, ", "),
                          did_you_mean(key, known_)));
  }
}

}  // namespace ddproof::scenario
