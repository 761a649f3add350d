// A group of ranks that share a store, and the keys under which they speak there.
//
// All keys of a group begin with its prefix ("gloo/<generation>", sub-groups "<parent>/<name>"):
//   here/<rank>     the rank has come                  arrived, everybody   how many; all have
//   left/<rank>     the rank has left
//   broken/<rank>   a call failed on this rank: "timeout" or "broken"
//   asked           a call met its timeout: every rank says where it is
//   at/<rank>       in which calls the rank is (whereabouts.h)
//   verdict         what the ranks agreed on: the first to know sets it, the others take it over
// Backends add keys of their own. lost/<generation>/<rank of the world> is the last will of a rank,
// so set by the store alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"

namespace ddproof {

class Whereabouts;

// Who this rank is in a group.
struct StoreGroup {
  std::string prefix;
  int rank = 0;
  std::vector<int> world_ranks;  // of each rank of the group

  int size() const { return static_cast<int>(world_ranks.size()); }
  std::string key(const char* name, int of_rank) const {
    return prefix + "/" + name + "/" + std::to_string(of_rank);
  }
  std::string asked_key() const { return prefix + "/asked"; }
  std::string verdict_key() const { return prefix + "/verdict"; }
  // The part called `name`, whose members are ranks of this group; `my_rank` is this rank's place.
  StoreGroup part(const std::string& name, const std::vector<int>& members, int my_rank) const {
    StoreGroup result{prefix + "/" + name, my_rank, {}};
    for (int member : members) {
      result.world_ranks.push_back(world_ranks[static_cast<std::size_t>(member)]);
    }
    return result;
  }
};

// What all groups of one rank share. `runtime` and `store` must outlive them.
struct StoreWorld {
  Runtime& runtime;
  Store& store;
  std::string backend;            // "gloo": what messages say
  std::string lost_prefix;        // "lost/<generation>/"
  std::optional<int> store_host;  // the rank of the world that hosts the store; empty: none does
  std::shared_ptr<Whereabouts> whereabouts = nullptr;  // of this rank; null: it does not say

  std::string lost_key(const StoreGroup& group, int rank) const {
    return lost_prefix + std::to_string(group.world_ranks[static_cast<std::size_t>(rank)]);
  }
};

}  // namespace ddproof
