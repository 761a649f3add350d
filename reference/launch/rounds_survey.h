// What the keys of rounds.h say about one round. For rounds*.cc only.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "reference/launch/rounds.h"

namespace ddproof {

// At one moment.
struct Rounds::Survey {
  struct Seen {
    std::optional<std::string> beat;
    std::optional<std::string> gone;
    std::optional<Node> joined;
  };

  std::optional<Round> last;         // the round before
  std::optional<RoundEnd> last_end;  // why it is over
  std::optional<Round> round;        // this one, if it is complete
  bool decided = false;              // complete, or the job has ended
  std::vector<Seen> nodes;           // by id - 1

  const Seen& of(int id) const { return nodes[static_cast<std::size_t>(id - 1)]; }
  Seen& of(int id) { return nodes[static_cast<std::size_t>(id - 1)]; }

  // Who has joined, and is not gone.
  std::vector<Node> present() const {
    std::vector<Node> present;
    for (const Seen& node : nodes) {
      if (node.joined && !node.gone) present.push_back(*node.joined);
    }
    return present;
  }
  // Whether the node may still act in this round, so that somebody must look after it.
  bool matters(int id) const {
    if (of(id).gone) return false;
    if (of(id).joined) return true;
    return last && std::ranges::count(last->members, id, &Node::id) > 0;
  }
};

}  // namespace ddproof
