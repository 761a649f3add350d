// What ranks must hold alike, compared bit by bit: the results of their calls, and what they
// trained.
//
// Threads: that of the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
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

  // The rank's next result that all ranks get alike. A rank's n-th is compared with the others'
  // n-th.
  void add_result(int rank, const std::string& what, std::uint64_t digest);
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
    bool alike = true;  // those that are there
    std::uint64_t first = 0;
  };

  Entry make_entry(const std::string& what) const;
  static void add(Entry& entry, int rank, std::uint64_t digest);

  std::size_t world_size_;
  std::vector<std::int64_t> counts_;       // of results, by rank
  std::map<std::int64_t, Entry> results_;  // by number; without those that all ranks hold alike
  Entry states_;
};

}  // namespace ddproof::scenario
