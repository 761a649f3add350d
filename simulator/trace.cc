#include "simulator/trace.h"

#include <istream>
#include <ostream>

namespace ddproof::sim {

void TextTrace::on_event(const Event& event) { out_ << to_string(event) << '\n'; }

std::optional<std::string> first_difference(std::istream& one, std::istream& other,
                                            std::size_t context) {
  std::deque<std::string> before;
  for (std::uint64_t number = 1;; ++number) {
    std::string a, b;
    const bool has_a = static_cast<bool>(std::getline(one, a));
    const bool has_b = static_cast<bool>(std::getline(other, b));
    if (!has_a && !has_b) return std::nullopt;
    if (has_a && has_b && a == b) {
      before.push_back(std::move(a));
      if (before.size() > context) before.pop_front();
      continue;
    }
    std::string text = "first difference in line " + std::to_string(number) + ":\n";
    for (const std::string& line : before) text += "  " + line + "\n";
    text += "- " + (has_a ? a : "(the log ends here)") + "\n";
    text += "+ " + (has_b ? b : "(the log ends here)") + "\n";
    return text;
  }
}

}  // namespace ddproof::sim
