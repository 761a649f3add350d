#include "simulator/time.h"

#include <array>
#include <utility>

namespace ddproof::sim {

std::string format_time(Time time) {
  constexpr std::array<std::pair<Time, const char*>, 3> kUnits = {
      {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}}};
  for (const auto& [size, name] : kUnits) {
    if (time < size) continue;
    std::string text = std::to_string(time / size);
    if (time % size != 0) {
      std::string fraction = std::to_string(size + time % size);  // a leading 1 keeps the zeros
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += "." + fraction.substr(1);
    }
    return text + name;
  }
  return std::to_string(time) + " ns";
}

}  // namespace ddproof::sim
