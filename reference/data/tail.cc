#include "reference/data/tail.h"

#include "backends/api/check.h"

namespace ddproof {

std::string_view name_of(Tail tail) {
  if (tail == Tail::kPad) return "pad";
  return tail == Tail::kDrop ? "drop" : "keep";
}

std::int64_t share_of(std::int64_t count, int replicas, int rank, Tail tail) {
  DDPROOF_CHECK(count >= 0);
  const std::int64_t rounds = count / replicas;
  const std::int64_t left = count % replicas;
  if (tail == Tail::kDrop || left == 0) return rounds;
  return tail == Tail::kPad || rank < left ? rounds + 1 : rounds;
}

}  // namespace ddproof
