#include "reference/launch/line_prefix.h"

#include <algorithm>

namespace ddproof {

std::string LinePrefix::take(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::size_t room = kLineBytesMax - line_.size();
    const std::size_t newline = bytes.substr(0, room).find('\n');
    const bool ends = newline != std::string_view::npos;
    const std::size_t count = ends ? newline : std::min(room, bytes.size());
    line_ += bytes.substr(0, count);
    bytes.remove_prefix(count + (ends ? 1 : 0));
    if (!ends && line_.size() < kLineBytesMax) break;
    lines += prefix_ + line_ + "\n";
    line_.clear();
  }
  return lines;
}

std::string LinePrefix::finish() {
  if (line_.empty()) return "";
  std::string last = prefix_ + line_ + "\n";
  line_.clear();
  return last;
}

}  // namespace ddproof
