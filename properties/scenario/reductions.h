// Smaller scenarios, as documents: what shrinking tries. As scenario_edit.h, a result may be no
// scenario, or another one.
//
// Pure. Threads: any.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "properties/scenario/json_node.h"

namespace ddproof::scenario {

// Which of so many parts to leave out.
using Parts = std::vector<bool>;

using Keys = std::set<std::string>;

// The members that a scenario need not have.
std::vector<std::string> optional_keys(const Json& document);
Json without_key(const Json& document, const std::string& key);
// The keys of its steps that need not stay as they are; each goes from all steps at once.
std::vector<std::string> step_keys(const Json& document, const Keys& fixed);
Json without_step_key(const Json& document, const std::string& key);

// Steps that several ranks make count once for all of them: a part is the n-th step that looks so
// in each program.
std::size_t count_shared_steps(const Json& document);
Json without_shared_steps(const Json& document, const Parts& parts);
// Steps of the ranks that do the same; those that look the same elsewhere stay.
std::size_t count_steps_of_groups(const Json& document);
Json without_steps_of_groups(const Json& document, const Parts& parts);

// Messages: the n-th send of one rank to another with the n-th receive there, of one tag.
std::size_t count_messages(const Json& document);
Json without_messages(const Json& document, const Parts& parts);

std::size_t count_groups(const Json& document);
// Steps in them then belong to no group of the scenario.
Json without_groups(const Json& document, const Parts& parts);

// The ranks that its faults name one by one.
std::set<int> ranks_of_faults(const Json& document);
Json without_faults(const Json& document, const Parts& parts);
// Each with one fault that strikes earlier: by 1 to `earlier_max` in its count, or at a half, a
// fourth, ... of its time.
std::vector<Json> with_earlier_faults(const Json& document, std::uint64_t earlier_max);

// Loops take half as many turns, samplers half as many samples and trainings half as many steps,
// all at once. `scales_turns`: conditions on turns then ask for half of their numbers.
Json halved(const Json& document, bool scales_turns);
// Loops take one turn.
Json taken_once(const Json& document);

// Calls that are checked give zeros and expect zeros, which is right for any number of ranks.
Json zeroed(const Json& document);

// Gives `attempt` documents in which one step, wherever it stands, is simpler: what it holds in its
// place, a key less, a smaller number, a shorter list; the keys of `fixed` stay. Ends, true, when
// `attempt` returns true.
bool any_smaller_step(const Json& document, const Keys& fixed,
                      const std::function<bool(const Json&)>& attempt);

}  // namespace ddproof::scenario
