#include "cli/progress.h"

#include <algorithm>

namespace ddproof {

void Progress::show(std::int64_t done, std::int64_t total, const std::string& text, TimePoint now) {
  if (!on_terminal_ || (drawn_ && done < total && now - last_ < kRedraw)) return;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = total > 0 ? std::min(kWidth, kWidth * done / total) : 0;
  out_ << "\r\033[K[" << std::string(static_cast<std::size_t>(filled), '#')
       << std::string(static_cast<std::size_t>(kWidth - filled), '.') << "] " << text << std::flush;
  drawn_ = true;
  last_ = now;
}

void Progress::clear() {
  if (drawn_) out_ << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace ddproof
