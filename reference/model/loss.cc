#include "reference/model/loss.h"

namespace ddproof::internal {

std::vector<std::int64_t> check_targets(std::span<const std::int64_t> targets, std::int64_t classes,
                                        std::int64_t ignore_index) {
  std::vector<std::int64_t> checked(targets.begin(), targets.end());
  for (std::size_t row = 0; row < checked.size(); ++row) {
    if (checked[row] == ignore_index) {
      checked[row] = -1;
    } else if (checked[row] < 0 || checked[row] >= classes) {
      throw ConfigError("cross-entropy target: row " + std::to_string(row) + " has " +
                        std::to_string(checked[row]) + ", expected 0 to " +
                        std::to_string(classes - 1) + " or ignore_index " +
                        std::to_string(ignore_index));
    }
  }
  return checked;
}

}  // namespace ddproof::internal
