// Finds out, after a failure, which ranks are lost or late, so that all ranks report the same.
// The evidence is in the store (keys: store_group.h), which gets a bounded time to answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/membership/finding.h"
#include "backends/membership/store_group.h"
#include "backends/membership/whereabouts.h"

namespace ddproof {

class Inquest {
 public:
  Inquest(const StoreWorld& world, const StoreGroup& group) : world_(world), group_(group) {}

  // Finds out, after a failure, who is to blame. Called at most once. Blocks for at most 0.6 s,
  // also when the store does not answer. Never throws.
  Finding explain(const Symptom& symptom);
  // Tells the ranks that will ask explain() what this rank knows for certain. Called instead of
  // explain(). Blocks until the store has answered, at most half a second. Never throws.
  void publish(const Finding& finding);

 private:
  struct Evidence {
    std::optional<std::string> verdict;
    std::vector<int> lost;         // ascending ranks of the group
    std::vector<std::string> how;  // of each lost rank: "its process died"
    std::vector<int> silent;       // neither lost nor broken, nor in a call of this group
    WhereRanksAre where;           // those of the silent who say so
    bool somebody_timed_out = false;
  };

  Finding investigate(Store& store, const Symptom& symptom);
  // Ranks that wait in another group's call which waits for ranks in this one: a finding for both
  // groups, which the other one learns here.
  std::optional<Finding> crossed_calls(Store& store, const Evidence& evidence,
                                       const Symptom& symptom) const;
  // What can be said when the store does not answer: `error` says why.
  Finding without_store(const Symptom& symptom, const std::string& error) const;
  Evidence gather(Store& store) const;
  std::optional<Finding> conclude(const Evidence& evidence, const Symptom& symptom,
                                  bool time_is_up) const;
  // The verdict that holds: this one, or that of a rank that was first.
  Finding agree_on(Store& store, const Finding& finding) const;

  const StoreWorld& world_;
  const StoreGroup& group_;
};

}  // namespace ddproof
