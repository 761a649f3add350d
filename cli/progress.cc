#include "cli/progress.h"

#include <algorithm>

namespace ddproof {

void Progress::show(std::int64_t done, std::int64_t total, const std::string& text, TimePoint now) {
  if (style_ == ProgressStyle::kSilent) return;
  const bool is_bar = style_ == ProgressStyle::kBar;
  if (drawn_ && done < total && now - last_ < (is_bar ? kRedraw : kLine)) return;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = total > 0 ? std::min(kWidth, kWidth * done / total) : 0;
  out_ << (is_bar ? "\r\033[K[" : "[") << std::string(static_cast<std::size_t>(filled), '#')
       << std::string(static_cast<std::size_t>(kWidth - filled), '.') << "] " << text
       << (is_bar ? "" : "\n") << std::flush;
  drawn_ = true;
  last_ = now;
}

void Progress::clear() {
  if (drawn_ && style_ == ProgressStyle::kBar) out_ << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace ddproof
