#include "reference/data/data_loader.h"

#include <fmt/format.h>

#include "backends/api/error.h"

namespace ddproof {

std::int64_t local_batch_size(std::int64_t global_batch_size, int world_size) {
  if (world_size < 1) {
    throw ConfigError(fmt::format("world size {}: expected at least 1", world_size));
  }
  if (global_batch_size < world_size || global_batch_size % world_size != 0) {
    throw ConfigError(
        fmt::format("global batch size {}: expected a multiple of the world size {}, at least one "
                    "sample a rank",
                    global_batch_size, world_size));
  }
  return global_batch_size / world_size;
}

}  // namespace ddproof
