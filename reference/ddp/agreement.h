// Small agreements between ranks. All are collective and synchronous; besides what is listed, they
// throw the errors of ProcessGroup, and CommError{kMismatch} where what they received makes no
// sense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/process_group.h"

namespace ddproof {

// Throws CommError{kMismatch}: what came from other ranks in the call `what` cannot be what they
// sent.
[[noreturn]] void throw_damaged(const ProcessGroup& group, const std::string& what);

// True on all ranks when all ranks passed equal text. One small all-reduce.
bool all_ranks_have(ProcessGroup& group, const std::string& text, const std::string& label);

// Every rank's text, by rank.
std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& text,
                                      const std::string& label);

// The first rank whose text is not rank 0's, to be asked when all_ranks_have() denies that all are
// equal. Throws CommError{kMismatch} where they are: then a message was damaged on its way.
std::size_t first_odd_rank(const ProcessGroup& group, const std::vector<std::string>& texts,
                           const std::string& what);

struct Setting {
  std::string name;
  std::string value;
};

// Throws the same ConfigError on all ranks when their values differ, naming only those that do:
// "settings differ between ranks: NAME is A on rank 0 and B on rank 2, ...; ADVICE".
// Requires: the same names in the same order on all ranks; no zero byte.
void require_same_settings(ProcessGroup& group, const std::vector<Setting>& settings,
                           const std::string& advice);

// Rank 0's list, on every rank. Requires: the same values on all ranks, in any order.
std::vector<std::size_t> adopt_from_rank_zero(ProcessGroup& group,
                                              const std::vector<std::size_t>& values);

// Where a flag is set, looking at all ranks.
struct RankFlags {
  int first_rank = -1;          // the lowest rank with a flag
  std::size_t first_index = 0;  // its first flag
  std::int64_t count = 0;       // flags set, over all ranks
};

// Requires: equal lengths; at least one flag is set on some rank.
RankFlags gather_flags(ProcessGroup& group, const std::vector<std::uint8_t>& flags);

}  // namespace ddproof
