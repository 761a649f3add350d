// The calls that a rank is in, over all its groups: what it answers to those who miss it.
//
// Threads: any task of the rank.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/call.h"
#include "backends/api/runtime.h"
#include "backends/membership/store_group.h"

namespace ddproof {

// A call that a rank is in.
struct Whereabout {
  std::string prefix;            // of its group
  std::vector<int> world_ranks;  // of its group
  bool compares = false;         // a comparison of calls: nobody leaves it before all have come
  std::string call;              // "all_reduce #1 (...) at x.cc:9"
};

class Whereabouts {
 public:
  explicit Whereabouts(Runtime& runtime) : monitor_(runtime.make_monitor()) {}

  // From now on, until it leaves, the rank is in this call of the group: one at a time. `group`
  // must stay where it is meanwhile.
  void enter(const StoreGroup& group, const Call& call);
  void leave(const StoreGroup& group);

  // All of them, for read_whereabouts().
  std::string told() const;

 private:
  struct Stay {
    const StoreGroup* group = nullptr;
    bool compares = false;
    std::string call;
  };

  std::unique_ptr<Monitor> monitor_;        // guards stays_
  std::map<std::string_view, Stay> stays_;  // by the prefix of their group
};

std::vector<Whereabout> read_whereabouts(const std::string& told);

// Where a rank of a group is.
using WhereRanksAre = std::map<int, std::vector<Whereabout>>;

// The call of another group in which all of `missing` wait, and nowhere else, while it misses ranks
// that are in a call of `group`, and no others: two calls that cross, so that neither ever ends.
// `missing` are ranks of `group`, not none, and all its other ranks have come to the call.
std::optional<Whereabout> find_crossed_call(const StoreGroup& group,
                                            const std::vector<int>& missing,
                                            const WhereRanksAre& where);

}  // namespace ddproof
