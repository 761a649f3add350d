// What ranks must hold alike, compared bit by bit: the results of their calls, and what they
// trained.
//
// Threads: that of the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddproof::scenario {

struct Divergence {
  std::string what;
  std::vector<int> ranks;  // the odd ones out, ascending; empty: nobody knows
};

// Requires of every call: the rank is one of the world's.
class Replicas {
 public:
  explicit Replicas(int world_size);

  // The rank's next result that all `size` ranks of a group get alike; -1 is the world. A rank's
  // n-th in a group is compared with the others' n-th there.
  void add_result(int group, int size, int rank, const std::string& what, std::uint64_t digest);
  // What the rank has trained in the end; once.
  void add_state(int rank, std::uint64_t digest);

  // The first result that is not the same on all ranks that have it; else the states. The odd ranks
  // are those that do not hold what more than half of them hold.
  std::optional<Divergence> divergence() const;

 private:
  struct Entry {
    std::string what;
    std::vector<std::optional<std::uint64_t>> digests;  // by rank
    std::size_t missing = 0;
    bool is_first = true;
    bool alike = true;  // those that are there
    std::uint64_t first = 0;
  };

  Entry make_entry(const std::string& what, std::size_t size) const;
  static void add(Entry& entry, int rank, std::uint64_t digest);

  std::size_t world_size_;
  std::vector<std::vector<std::int64_t>> counts_;  // of results, by group (-1 first) and rank
  // By number and group; without those that all ranks hold alike.
  std::map<std::pair<std::int64_t, int>, Entry> results_;
  Entry states_;
};

}  // namespace ddproof::scenario
