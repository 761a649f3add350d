#include "simulator/fault_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ddproof::sim {
namespace {

enum class Slot : std::uint8_t { kRank, kPeer, kNumber, kAmount, kTime, kStart, kEnd, kRanks };

// One "name=value" of a text form.
struct Field {
  const char* name;
  Slot slot;
};

struct Form {
  FaultKind kind;
  const char* name;
  std::vector<Field> fields;
};

std::vector<Field> of_message(std::initializer_list<Field> more) {
  std::vector<Field> fields{{"from", Slot::kRank}, {"to", Slot::kPeer}, {"message", Slot::kNumber}};
  fields.insert(fields.end(), more);
  return fields;
}

// In the order of FaultKind.
std::array<Form, kFaultKindCount> forms() {
  using enum FaultKind;
  const Field rank{"rank", Slot::kRank};
  return {{
      {kCrash, "crash", {rank, {"operation", Slot::kNumber}}},
      {kHang, "hang", {rank, {"operation", Slot::kNumber}}},
      {kSlow, "slow", {rank, {"factor", Slot::kAmount}, {"delay", Slot::kTime}}},
      {kDelay, "delay", of_message({{"time", Slot::kTime}})},
      {kDrop, "drop", of_message({})},
      {kDuplicate, "duplicate", of_message({})},
      {kReorder, "reorder", of_message({{"time", Slot::kTime}})},
      {kTruncate, "truncate", of_message({{"bytes", Slot::kAmount}})},
      {kFlip, "flip", of_message({{"bit", Slot::kAmount}})},
      {kPartition,
       "partition",
       {{"ranks", Slot::kRanks}, {"start", Slot::kStart}, {"end", Slot::kEnd}}},
      {kShortWrite, "short-write", {rank, {"write", Slot::kNumber}, {"bytes", Slot::kAmount}}},
      {kFullDisk, "full-disk", {rank, {"write", Slot::kNumber}}},
      {kFailedSync, "failed-sync", {rank, {"sync", Slot::kNumber}}},
      {kPowerCut, "power-cut", {rank, {"change", Slot::kNumber}, {"seed", Slot::kAmount}}},
      {kClockJump, "clock-jump", {rank, {"start", Slot::kStart}, {"by", Slot::kTime}}},
  }};
}

Form form_of(FaultKind kind) { return forms()[static_cast<std::size_t>(kind)]; }

const char* placeholder(const Field& field) {
  switch (field.slot) {
    case Slot::kRank:
    case Slot::kPeer: return "RANK";
    case Slot::kNumber:
    case Slot::kAmount: return "NUMBER";
    case Slot::kTime:
    case Slot::kStart: return "TIME";
    case Slot::kEnd: return "TIME or never";
    case Slot::kRanks: return "RANK,RANK...";
  }
  return "";
}

std::string shape_of(const Form& form) {
  std::string text = form.name;
  for (const Field& field : form.fields) {
    text += std::string(" ") + field.name + "=" + placeholder(field);
  }
  return text;
}

constexpr std::array<std::pair<Time, const char*>, 4> kUnits = {
    {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};

std::string time_text(Time time) {
  if (time == kNever) return "never";
  for (const auto& [size, name] : kUnits) {
    if (time != 0 && time % size == 0) return std::to_string(time / size) + name;
  }
  return "0ns";
}

std::string value_text(const Fault& fault, Slot slot) {
  switch (slot) {
    case Slot::kRank: return std::to_string(fault.rank);
    case Slot::kPeer: return std::to_string(fault.peer);
    case Slot::kNumber: return std::to_string(fault.number);
    case Slot::kAmount: return std::to_string(fault.amount);
    case Slot::kTime: return time_text(fault.time);
    case Slot::kStart: return time_text(fault.start);
    case Slot::kEnd: return time_text(fault.end);
    case Slot::kRanks: break;
  }
  std::string text;
  for (const int rank : fault.ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

// The whole of `text` as a number.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Time> time_of(std::string_view text) {
  const auto digits = text.find_last_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const std::optional<Time> count = number_of<Time>(text.substr(0, digits + 1));
  const auto unit = std::ranges::find(kUnits, text.substr(digits + 1),
                                      [](const auto& u) { return std::string_view(u.second); });
  if (!count || unit == kUnits.end()) return std::nullopt;
  const Time limit = kNever / unit->first;
  if (*count >= limit || *count <= -limit) return std::nullopt;
  return *count * unit->first;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = split(text, ' ');
  std::erase(words, "");
  return words;
}

template <class Number>
bool take(std::optional<Number> value, Number low, Number& place) {
  if (!value || *value < low) return false;
  place = *value;
  return true;
}

bool take_ranks(std::string_view text, std::vector<int>& place) {
  for (const std::string_view part : split(text, ',')) {
    const std::optional<int> rank = number_of<int>(part);
    if (!rank || *rank < 0 || (!place.empty() && *rank <= place.back())) return false;
    place.push_back(*rank);
  }
  return true;
}

// False when the text is no value for this place.
bool read_value(std::string_view text, Slot slot, Fault& fault) {
  const Time time_min = fault.kind == FaultKind::kClockJump ? -kNever : 0;
  const std::uint64_t amount_min = fault.kind == FaultKind::kSlow ? 1 : 0;
  switch (slot) {
    case Slot::kRank: return take(number_of<int>(text), 0, fault.rank);
    case Slot::kPeer: return take(number_of<int>(text), 0, fault.peer);
    case Slot::kNumber: return take<std::uint64_t>(number_of<std::uint64_t>(text), 1, fault.number);
    case Slot::kAmount: return take(number_of<std::uint64_t>(text), amount_min, fault.amount);
    case Slot::kTime: return take(time_of(text), time_min, fault.time);
    case Slot::kStart: return take<Time>(time_of(text), 0, fault.start);
    case Slot::kEnd: return text == "never" || take(time_of(text), fault.start, fault.end);
    case Slot::kRanks: return take_ranks(text, fault.ranks);
  }
  return false;
}

const char* allowed(const Field& field, FaultKind kind) {
  switch (field.slot) {
    case Slot::kRank:
    case Slot::kPeer: return "a rank, 0 or more";
    case Slot::kNumber: return "a count, 1 or more";
    case Slot::kAmount:
      return kind == FaultKind::kSlow ? "a whole number, 1 or more" : "a whole number, 0 or more";
    case Slot::kTime:
      return kind == FaultKind::kClockJump ? "a whole number of ns, us, ms or s, such as -3s"
                                           : "a whole number of ns, us, ms or s, such as 10us";
    case Slot::kStart: return "a whole number of ns, us, ms or s, such as 10us";
    case Slot::kEnd: return "a time such as 10us, not before the start, or never";
    case Slot::kRanks: return "ascending ranks such as 0,1";
  }
  return "";
}

std::string kind_names() {
  std::string names;
  for (const Form& form : forms()) names += std::string(names.empty() ? "" : ", ") + form.name;
  return names;
}

[[noreturn]] void refuse_fault(std::string_view text, const std::string& why) {
  throw std::invalid_argument("fault \"" + std::string(text) + "\": " + why);
}

}  // namespace

bool strikes_a_message(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDelay:
    case FaultKind::kDrop:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kTruncate:
    case FaultKind::kFlip: return true;
    default: return false;
  }
}

const char* to_string(FaultKind kind) { return form_of(kind).name; }

std::string to_string(const Fault& fault) {
  const Form form = form_of(fault.kind);
  std::string text = form.name;
  for (const Field& field : form.fields) {
    text += std::string(" ") + field.name + "=" + value_text(fault, field.slot);
  }
  return text;
}

std::string to_string(const FaultPlan& plan) {
  std::string text;
  for (const Fault& fault : plan) text += (text.empty() ? "" : "; ") + to_string(fault);
  return text;
}

Fault parse_fault(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  const std::array<Form, kFaultKindCount> all = forms();
  if (words.empty()) refuse_fault(text, "it is empty, expected one of " + kind_names());
  const auto form =
      std::ranges::find(all, words.front(), [](const Form& f) { return std::string_view(f.name); });
  if (form == all.end()) {
    refuse_fault(text, "\"" + std::string(words.front()) + "\" is no fault, expected one of " +
                           kind_names());
  }
  Fault fault{.kind = form->kind};
  const std::string hint = "; the form is \"" + shape_of(*form) + "\"";
  for (std::size_t i = 0; i < form->fields.size(); ++i) {
    const Field& field = form->fields[i];
    const std::string start = std::string(field.name) + "=";
    const bool at_end = words.size() <= i + 1;
    if (at_end || !words[i + 1].starts_with(start)) {
      const std::string place =
          at_end ? "at its end" : "where it says \"" + std::string(words[i + 1]) + "\"";
      refuse_fault(text, "expected \"" + start + placeholder(field) + "\" " + place + hint);
    }
    const std::string_view value = words[i + 1].substr(start.size());
    if (!read_value(value, field.slot, fault)) {
      refuse_fault(text, std::string(field.name) + " is \"" + std::string(value) + "\"; it takes " +
                             allowed(field, fault.kind));
    }
  }
  if (words.size() > form->fields.size() + 1) {
    refuse_fault(text,
                 "nothing may follow \"" + std::string(words[form->fields.size()]) + "\"" + hint);
  }
  return fault;
}

FaultPlan parse_fault_plan(std::string_view text) {
  FaultPlan plan;
  if (words_of(text).empty()) return plan;
  const std::vector<std::string_view> parts = split(text, ';');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t begin = parts[i].find_first_not_of(' ');
    if (begin == std::string_view::npos) {
      throw std::invalid_argument("fault " + std::to_string(i + 1) + " of \"" + std::string(text) +
                                  "\" is empty: expected one of " + kind_names());
    }
    plan.push_back(parse_fault(parts[i].substr(begin, parts[i].find_last_not_of(' ') + 1 - begin)));
  }
  return plan;
}

void check_fault_plan(const FaultPlan& plan, int ranks) {
  for (const Fault& fault : plan) {
    std::vector<int> named = fault.ranks;
    for (const Field& field : form_of(fault.kind).fields) {
      if (field.slot == Slot::kRank) named.push_back(fault.rank);
      if (field.slot == Slot::kPeer) named.push_back(fault.peer);
    }
    for (const int rank : named) {
      if (0 <= rank && rank < ranks) continue;
      refuse_fault(to_string(fault), "rank " + std::to_string(rank) + " is not in a world of " +
                                         std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
    }
  }
}

}  // namespace ddproof::sim
