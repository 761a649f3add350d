#include "properties/scenario/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "backends/api/error.h"

namespace ddproof::scenario {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;
constexpr int kNestingMax = 32;

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const auto line = 1 + std::ranges::count(before, '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

// Walks over a text and counts the lines that it has come to.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  // `line` is borrowed.
  LineCounter(const char* at, int& line) : at_(at), line_(&line) {}

  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    const LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

// Called by the parser as it goes: refuses what would be lost or overflow before it is built, and
// notes the lines of objects, in the order in which they begin.
class Guard {
 public:
  // Borrows all.
  Guard(const std::string& file, const int& line, std::vector<int>& lines)
      : file_(file), line_(line), lines_(lines) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kNestingMax) {
      throw ConfigError(fmt::format("{}: nested deeper than {}", file_, kNestingMax));
    }
    const auto at = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      keys_.resize(at + 1);
      keys_[at].clear();
      lines_.push_back(line_);
    }
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!keys_[at - 1].insert(key).second) {
        throw ConfigError(fmt::format("{}: the key \"{}\" stands twice in one object", file_, key));
      }
    }
    return true;
  }

 private:
  const std::string& file_;
  const int& line_;
  std::vector<int>& lines_;
  std::vector<std::set<std::string>> keys_;  // by depth
};

Json read(std::string_view text, const std::string& file, std::vector<int>& lines) {
  if (text.size() > kFileBytesMax) {
    throw ConfigError(fmt::format("{}: is {} bytes; a scenario has at most {}", file, text.size(),
                                  kFileBytesMax));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw ConfigError(file + ": is empty; a scenario is a JSON object");
  }
  if (const auto end = text.find('\0'); end != std::string_view::npos) {
    throw ConfigError(
        fmt::format("{}: {}: no JSON: a zero byte", file, line_and_column(text, end + 1)));
  }
  try {
    int line = 1;
    const LineCounter begin(text.data(), line);
    const LineCounter end(text.data() + text.size(), line);
    return Json::parse(begin, end, Guard(file, line, lines));
  } catch (const Json::parse_error& error) {
    const std::string what = error.what();  // "[...] parse error at line 1, column 2: WHY"
    const auto why = what.find(": ");
    throw ConfigError(fmt::format("{}: {}: no JSON: {}", file, line_and_column(text, error.byte),
                                  why == std::string::npos ? what : what.substr(why + 2)));
  } catch (const Json::exception& error) {  // a number that is too large
    const std::string what = error.what();  // "[...] WHY"
    throw ConfigError(fmt::format("{}: no JSON: {}", file, what.substr(what.find("] ") + 2)));
  }
}

// Calls `visit` for each object, in the order in which they begin.
template <class Visit>
void for_each_object(const Json& value, const Visit& visit) {
  if (value.is_object()) visit(value);
  if (!value.is_structured()) return;
  for (const Json& member : value) for_each_object(member, visit);
}

}  // namespace

JsonText::JsonText(std::string_view text, std::string file) : file_(std::move(file)) {
  std::vector<int> lines;
  value_ = read(text, file_, lines);
  auto line = lines.begin();
  for_each_object(value_, [&](const Json& object) { lines_[&object] = *line++; });
}

}  // namespace ddproof::scenario
