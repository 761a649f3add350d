// A group of ranks that are connected over TCP, and the keys under which they speak at the store.
//
// All keys of a group begin with its prefix ("gloo/<generation>", sub-groups "<parent>/<name>"):
//   here/<rank>     the rank has come                  arrived, everybody   how many; all have
//   mesh/...        Gloo's own addresses               left/<rank>          the rank has left
//   broken/<rank>   a call failed on this rank: "timeout" or "broken"
//   verdict         what the ranks agreed on: the first to know sets it, the others take it over
// lost/<generation>/<rank of the world> is the last will of a rank, so set by the store alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"

namespace gloo::transport {
class Device;
}

namespace ddproof {

// Who this rank is in a group.
struct TcpGroup {
  std::string prefix;
  int rank = 0;
  std::vector<int> world_ranks;  // of each rank of the group

  int size() const { return static_cast<int>(world_ranks.size()); }
  std::string key(const char* name, int of_rank) const {
    return prefix + "/" + name + "/" + std::to_string(of_rank);
  }
  std::string verdict_key() const { return prefix + "/verdict"; }
};

// What all connections of one rank share. `runtime` and `store` must outlive them.
struct TcpWorld {
  Runtime& runtime;
  Store& store;
  std::shared_ptr<gloo::transport::Device> device;
  std::string lost_prefix;        // "lost/<generation>/"
  std::optional<int> store_host;  // the rank of the world that hosts the store; empty: none does

  std::string lost_key(const TcpGroup& group, int rank) const {
    return lost_prefix + std::to_string(group.world_ranks[static_cast<std::size_t>(rank)]);
  }
};

}  // namespace ddproof
