// A scenario's document as something that programs change: its ranks, their steps, its text.
//
// Requires of every document: parse_scenario() accepts it. What comes of a change may be no
// scenario any more, or another one: the caller reads and runs it. Pure. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/scenario/json_node.h"

namespace ddproof::scenario {

// Ranks that do the same.
struct RankGroup {
  std::vector<int> ranks;  // ascending
  Json steps;
};
using RankGroups = std::vector<RankGroup>;

RankGroups groups_of(const Json& document);
// The document with these programs; those that are the same become one.
Json with_groups(const Json& document, const RankGroups& groups);

// What becomes of messages to and from a rank that is left out.
enum class LostPeer : std::uint8_t {
  kDrop,
  kSkip,  // what was sent to it goes to the next rank, what came from it comes from the one before
};

// The same world without the other ranks; those that are kept, in ascending order, become 0, 1, ...
// Faults and culprits that are lost are dropped, and groups without ranks; a lost root becomes rank
// 0, or the first of its group. An expected sum that
// was right for equal or default values still is; other expectations of collectives are dropped,
// since they may have been right only for so many ranks. Requires: one is kept.
Json keep_ranks(const Json& document, const std::vector<int>& kept, LostPeer lost_peer);

// Repeats unrolled and branches on ranks and turns taken, where that makes no more than `steps_max`
// steps for each rank; else nothing changes. What a sampler does for each batch stays as it is.
Json flatten(const Json& document, std::size_t steps_max);

// The keys under which steps hold steps.
inline constexpr const char* kStepLists[] = {"steps", "then", "else", "each"};

// Calls `action` for each list of steps in `steps`, the outer ones first.
void for_each_list(Json& steps, const std::function<void(Json& list)>& action);

// Laid out for people: a member a line, a step a line.
std::string to_text(const Json& document);

}  // namespace ddproof::scenario
