// The last calls of one rank, told as PyTorch's flight recorder tells them: what somebody reads
// after a hang. README.md says what the fields mean here.
//
// Plain data with no clock of its own. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/process_group.h"
#include "backends/api/time.h"

namespace ddproof {

class FlightRecorder {
 public:
  // Keeps the last `capacity` calls.
  explicit FlightRecorder(std::size_t capacity = 2'000);

  // `group` is about to make `call`. The number of the entry.
  std::uint64_t begin(const ProcessGroup& group, const Call& call, TimePoint now);
  // The rank has seen that it is done. `failed`: with an error, so it was never completed.
  void end(std::uint64_t record, TimePoint now, bool failed);

  // The whole dump: version, pg_config, pg_status, entries.
  std::string to_json() const;
  // "all_reduce #3 (sum, float32 [4]) at train.py:88: completed": the first call that is not, and
  // those before it; the oldest first.
  std::vector<std::string> last_calls(std::size_t count) const;

 private:
  // Of one group of this rank.
  struct GroupRecord {
    std::size_t id = 0;  // the order of first use
    int size = 0;
    std::uint64_t collectives = 0;
    std::uint64_t point_to_points = 0;
    std::uint64_t last_enqueued = 0;  // collectives
    std::uint64_t last_completed = 0;
    std::uint64_t unfinished = 0;  // calls
  };
  struct Entry {
    std::uint64_t record = 0;
    std::string group;
    std::uint64_t collective = 0;
    std::uint64_t point_to_point = 0;
    std::string name;         // "sim:all_reduce", "sim:send 0->1"
    std::string description;  // Call::describe()
    std::vector<std::int64_t> input_sizes, output_sizes;
    std::string input_dtype, output_dtype;
    bool has_input = false, has_output = false;
    CallSite site;
    Duration timeout{0};
    bool is_p2p = false;
    TimePoint created{0};
    std::optional<TimePoint> started;
    std::optional<TimePoint> done;
    bool failed = false;
  };

  void start_next(const std::string& group, TimePoint now);
  static const char* state_of(const Entry& entry);

  std::size_t capacity_;
  std::uint64_t count_ = 0;
  int rank_ = 0;                               // of the world
  std::deque<Entry> entries_;                  // their records count up one by one
  std::map<std::string, GroupRecord> groups_;  // by name
};

}  // namespace ddproof
