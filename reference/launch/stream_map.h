// torchrun's way to say which streams of which workers: --redirects and --tee (SEMANTICS 10.1).
//
//   "3"          for every worker; 0 none, 1 standard output, 2 standard error, 3 both
//   "0:1,12:3"   by local rank, none for the others. torchrun takes local ranks below 10 only
// Immutable.
#pragma once

#include <string>
#include <vector>

#include "backends/api/processes.h"

namespace ddproof {

class StreamMap {
 public:
  StreamMap() = default;  // none
  // `flag` is what the errors call it. Throws ConfigError naming the flag, its value, and what is
  // allowed, also for a local rank that is not below `local_world_size`.
  StreamMap(const std::string& flag, const std::string& text, int local_world_size);

  bool has(int local_rank, Stream stream) const;
  bool is_empty() const;

 private:
  std::vector<int> streams_;  // by local rank, a sum of 1 and 2
};

// "0,2" of --local-ranks-filter. Throws ConfigError as above; also when a rank stands twice.
std::vector<int> parse_local_ranks(const std::string& flag, const std::string& text,
                                   int local_world_size);

}  // namespace ddproof
