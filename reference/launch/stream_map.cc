#include "reference/launch/stream_map.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// A whole number from 0 to `high`.
std::optional<int> parse_number(std::string_view text, int high) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || text.front() == '-' || number > high) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_value(const std::string& flag, const std::string& text,
                               const std::string& allowed) {
  throw ConfigError(flag + " is \"" + text + "\"; allowed: " + allowed);
}

std::string local_ranks_below(int local_world_size) {
  return local_world_size == 1 ? "local rank 0"
                               : "local ranks 0 to " + std::to_string(local_world_size - 1);
}

}  // namespace

StreamMap::StreamMap(const std::string& flag, const std::string& text, int local_world_size) {
  const auto refuse = [&] {
    refuse_value(flag, text,
                 "0 (none), 1 (standard output), 2 (standard error) or 3 (both), for all workers, "
                 "or by local rank, as 0:1,1:3, with " +
                     local_ranks_below(local_world_size) + ", each once");
  };
  const auto size = static_cast<std::size_t>(local_world_size);
  if (const auto all = parse_number(text, 3)) {
    streams_.assign(size, *all);
    return;
  }
  streams_.assign(size, 0);
  std::set<int> seen;
  for (const std::string_view entry : split(text, ',')) {
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos) refuse();
    const auto rank = parse_number(entry.substr(0, colon), local_world_size - 1);
    const auto streams = parse_number(entry.substr(colon + 1), 3);
    if (!rank || !streams || !seen.insert(*rank).second) refuse();
    streams_[static_cast<std::size_t>(*rank)] = *streams;
  }
}

bool StreamMap::has(int local_rank, Stream stream) const {
  if (streams_.empty()) return false;
  const int bit = stream == Stream::kOut ? 1 : 2;
  return (streams_[static_cast<std::size_t>(local_rank)] & bit) != 0;
}

bool StreamMap::is_empty() const {
  return std::ranges::all_of(streams_, [](int streams) { return streams == 0; });
}

std::vector<int> parse_local_ranks(const std::string& flag, const std::string& text,
                                   int local_world_size) {
  std::set<int> ranks;
  for (const std::string_view entry : split(text, ',')) {
    const auto rank = parse_number(entry, local_world_size - 1);
    if (rank && ranks.insert(*rank).second) continue;
    refuse_value(flag, text,
                 local_ranks_below(local_world_size) + ", with commas between them, each once");
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace ddproof
