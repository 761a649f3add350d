// What agents write into the rendezvous store about rounds, as text: one line each, a round
// several. Values. Parsing throws CommError{kMismatch} for what is no such record. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddproof {

// One agent, with its workers. A process that joins again after it was given up is another node.
struct Node {
  int id = 0;        // from 1, in the order in which they came to the job
  std::string host;  // a name without blanks
  std::int64_t pid = 0;
  int local_world_size = 1;
  int node_rank = -1;   // static: --node-rank
  std::string address;  // where its workers would meet, if it becomes group rank 0
  std::uint16_t port = 0;

  friend bool operator==(const Node&, const Node&) = default;
};

// A complete round: who starts workers together.
struct Round {
  int number = 0;             // from 1
  int restarts = 0;           // after failures, before it
  std::string reason;         // why the round before ended; empty: it is the first
  std::vector<Node> members;  // by group rank
  int group_rank = 0;         // ours

  const Node& master() const { return members.front(); }
  int group_size() const { return static_cast<int>(members.size()); }
  // RANK of our local rank 0.
  int first_rank() const;
  int world_size() const;
};

// How a job ended, for all of its nodes.
struct JobEnd {
  int status = 0;    // 0: all workers returned 0
  std::string text;  // why, unless the status is 0

  friend bool operator==(const JobEnd&, const JobEnd&) = default;
};

// Why a round is over.
struct RoundEnd {
  enum class Kind : std::uint8_t {
    kSucceeded,  // all workers of all members: the job has ended
    kFailed,     // a worker
    kLost,       // a member is gone without a word, or left
    kJoined,     // one more node has come
  };
  Kind kind = Kind::kSucceeded;
  int status = 0;  // of the first failure
  std::string text;

  friend bool operator==(const RoundEnd&, const RoundEnd&) = default;
};

// What comes of joining: a round, or the job's end.
struct RoundOutcome {
  std::optional<Round> round;
  JobEnd end;  // where there is no round
};

std::string to_record(const Node& node);
Node parse_node(const std::string& record);
std::string to_record(const RoundEnd& end);
RoundEnd parse_round_end(const std::string& record);
std::string to_record(const RoundOutcome& outcome);
// Without number and group rank, which the reader knows.
RoundOutcome parse_outcome(const std::string& record);

// "HOST (pid 17)".
std::string describe(const Node& node);
// "HOST (pid 17) is lost: WHY".
std::string lost_text(const Node& node, const std::string& why);
// "HOST, HOST and 3 more": whom a message names.
std::string hosts_of(const std::vector<Node>& nodes);

}  // namespace ddproof
