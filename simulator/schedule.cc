#include "simulator/schedule.h"

#include <charconv>

#include "simulator/random.h"

namespace ddproof::sim {
namespace {

constexpr std::string_view kVersion = "s1";
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kCheckDigits = 8;
constexpr std::uint64_t kMore = 32;  // a letter with this bit is not the last of its number

std::string hex(std::uint64_t value) {
  char buffer[16];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr};
}

std::string check_of(std::string_view text) {
  std::uint64_t state = text.size();
  for (const char c : text) state = mix64(state * 257 + static_cast<unsigned char>(c) + 1);
  const std::string digits = hex(state >> 32);
  return std::string(kCheckDigits - digits.size(), '0') + digits;
}

// Five bits a letter, the lowest first.
void append_number(std::string& text, std::uint64_t value) {
  for (; value >= kMore; value >>= 5) text += kLetters[(value % kMore) | kMore];
  text += kLetters[value];
}

[[noreturn]] void refuse_schedule(std::string_view text, const std::string& why) {
  throw ScheduleError("schedule \"" + std::string(text.substr(0, 40)) +
                      (text.size() > 40 ? "...\" " : "\" ") + why);
}

// Reads what append_number() wrote.
class Numbers {
 public:
  explicit Numbers(std::string_view letters) : letters_(letters) {}
  bool empty() const { return place_ == letters_.size(); }
  // False at the end, at a strange letter, and above 64 bits.
  bool read(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !empty(); shift += 5) {
      const std::size_t letter = kLetters.find(letters_[place_++]);
      if (letter == std::string_view::npos) return false;
      value |= (letter % kMore) << shift;
      if (letter < kMore) return true;
    }
    return false;
  }

 private:
  std::string_view letters_;
  std::size_t place_ = 0;
};

bool read_number(std::string_view text, int base, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Runs of the same choice: first choices by number left out, index, count, repetitions after it.
bool read_choices(std::string_view letters, Schedule& schedule) {
  Numbers numbers(letters);
  std::uint64_t decision = 0;
  while (!numbers.empty()) {
    std::uint64_t gap = 0, index = 0, count = 0, repeats = 0;
    if (!numbers.read(gap) || !numbers.read(index) || !numbers.read(count)) return false;
    if (!numbers.read(repeats) || index == 0 || index >= count) return false;
    if (gap >= schedule.decisions - decision) return false;
    decision += gap;
    if (repeats >= schedule.decisions - decision) return false;
    for (std::uint64_t i = 0; i <= repeats; ++i) {
      schedule.choices.push_back({decision++, index, count});
    }
  }
  return true;
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text(kVersion);
  text += "." + hex(schedule.seed) + "." + std::to_string(schedule.decisions) + ".";
  std::uint64_t decision = 0;
  const auto& choices = schedule.choices;
  for (std::size_t i = 0; i < choices.size();) {
    const Choice& first = choices[i];
    std::size_t end = i + 1;
    while (end < choices.size() &&
           choices[end] == Choice{first.decision + (end - i), first.index, first.count}) {
      ++end;
    }
    append_number(text, first.decision - decision);
    append_number(text, first.index);
    append_number(text, first.count);
    append_number(text, end - i - 1);
    decision = first.decision + (end - i);
    i = end;
  }
  return text + "." + check_of(text + ".");
}

Schedule parse_schedule(std::string_view text) {
  const std::size_t version_end = text.find('.');
  const std::string_view version = text.substr(0, version_end);
  if (version != kVersion) {
    refuse_schedule(text, "has version \"" + std::string(version.substr(0, 8)) +
                              "\"; this build replays version \"" + std::string(kVersion) + "\"");
  }
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() < 5 || (parts.size() == 5 && parts[4].size() < kCheckDigits)) {
    refuse_schedule(text, "is cut short; copy the whole line");
  }
  if (parts.size() > 5) refuse_schedule(text, "has more than five parts; copy just the schedule");
  if (check_of(text.substr(0, text.size() - parts[4].size())) != parts[4]) {
    refuse_schedule(text, "is damaged: its checksum does not match; copy the line again");
  }
  Schedule schedule;
  const bool is_sound = read_number(parts[1], 16, schedule.seed) &&
                        read_number(parts[2], 10, schedule.decisions) &&
                        read_choices(parts[3], schedule);
  if (!is_sound)
    refuse_schedule(text, "is damaged: its checksum matches, but its choices make no sense");
  return schedule;
}

}  // namespace ddproof::sim
