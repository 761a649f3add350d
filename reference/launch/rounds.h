// Which nodes make up a job's world, agreed upon through a store: the rendezvous of agents.
//
// A job has rounds, counted from 1. Nodes join a round; once it is complete its members are fixed,
// and each starts its workers; when the round is over they stop them and join the next one.
// torchrun's dynamic rendezvous is the model (SEMANTICS 10.4); keys are below, all under
// "rounds/RUN_ID/".
//
//   settings       what all nodes must agree on, from the first one
//   nodes          how many came; the sum is the new one's id
//   node_rank/K    static: the node that has --node-rank K
//   beat/ID        a heartbeat: counted up
//   gone/ID        why the node is no part of the job any more; also its last will
//   newest         a round that is complete, where late nodes begin to look
//   join/R/ID, joins/R   who has come to round R, and how many
//   leader/R       who looks after the others in round R; when it is gone, another one takes over
//   outcome/R      the members of round R, or the job's end; whoever is first decides
//   done/R         how many members' workers have all returned 0
//   over/R         why round R is over; whoever is first decides
//
// Rules:
//   Complete  at nodes_max nodes at once; with nodes_min once `last_call` has passed since. Never
//             before each member of the round before has joined, or is gone: so workers of two
//             rounds never run at once, but for those of a node that was given up and has not
//             noticed yet. It stops them when it does, at the latest when the store does not answer
//             for `keep_alive_attempts` intervals.
//   Over      when all members are done, which ends the job; when a worker failed, a member is
//             gone, or one more node comes and there is room. A node that comes when some are done
//             waits for the end.
//   Gone      who said so, whose process died (at once, by its last will), and who missed
//             `keep_alive_attempts` heartbeats.
//   Restarts  a failure uses one up everywhere. It does not count when a member is gone, too: then
//             the loss is the reason, and workers failed because of it. When none is left the job
//             ends, with the first failure's status.
//   Ranks     group ranks are by host name, then by id; static: by node rank. RANK is the sum of
//             lower local world sizes plus the local rank.
//   Static    nodes_min == nodes_max, and a node that is gone once a round was complete ends the
//             job with kLostNodeStatus.
//   Refused   at once, with both sides named: other settings, a node rank that is taken, one node
//             too many, a job that has ended (its id stays closed), a master address that only its
//             own host can reach.
//
// A node sends 11 messages to join and 3 per interval while it waits; the leader also reads the
// others' keys, in one message. A job has at most kNodesEverMax nodes over its life.
//
// Threads: join() and wait_over() in one task at a time; the others from any task. With several
// nodes a task of its own sends heartbeats from the first join() to leave(), cancel() or the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"
#include "reference/launch/round_records.h"

namespace ddproof {

// The status of a job that lost a node it cannot do without.
inline constexpr int kLostNodeStatus = 3;

inline constexpr int kNodesEverMax = 20'000;

struct RoundsOptions {
  std::string run_id = "none";
  int nodes_min = 1;
  int nodes_max = 1;
  int node_rank = -1;  // static; -1: elastic
  int max_restarts = 0;
  int local_world_size = 1;
  std::string host = "localhost";  // without blanks
  std::int64_t pid = 0;
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call = std::chrono::seconds(30);
  Duration keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_attempts = 3;

  bool is_static() const { return node_rank >= 0; }
};

// Where a node's workers can be met.
struct Meeting {
  std::string address;
  std::uint16_t port = 0;
};

class Rounds {
 public:
  // Requires: 1 <= nodes_min <= nodes_max, node_rank < nodes_max. Both must outlive this.
  Rounds(Store& store, Runtime& runtime, RoundsOptions options);
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // False: there may be other nodes.
  bool is_alone() const { return options_.nodes_max == 1; }

  // Joins the next round, and returns once it is complete, or the job has ended. `open_meeting` is
  // called when there is a round to join, and says where workers meet if this node becomes group
  // rank 0. Empty after cancel(). Where is_alone() it waits for nothing.
  // Throws ConfigError when this node is refused, CommError{kTimeout} when too few came within
  // `join_timeout`, CommError{kPeerLost} when the store is gone.
  std::optional<RoundOutcome> join(const std::function<Meeting()>& open_meeting);
  // Looks after the round that join() gave, until it is over; empty after cancel(). When this node
  // was given up meanwhile, it is a new one from the next join() on. Throws as join().
  std::optional<RoundEnd> wait_over();

  // All workers of this node returned 0, or the first one failed, in the round that join() gave.
  void succeed();
  void fail(int status, const std::string& text);
  // This node leaves the job. Never throws: when the store is gone, so is the job. Requires:
  // neither join() nor wait_over() runs.
  void leave();
  // Ends join() and wait_over(), now and later.
  void cancel();

 private:
  enum class Wake { kGoal, kGivenUp, kCancelled, kTimeout };
  struct Survey;

  std::string key(const std::string& name) const {
    return "rounds/" + options_.run_id + "/" + name;
  }
  std::string key(const char* name, int number) const;
  std::string key(const char* name, int number, int id) const;
  Duration patience() const { return options_.keep_alive_interval * options_.keep_alive_attempts; }
  // For calls that must not take longer than a node may be silent.
  std::unique_ptr<Store> prompt_store() const;

  void enroll();
  void agree_on_settings();
  void claim_node_rank();
  // Moves number_ to the first round that can still be joined.
  std::optional<RoundOutcome> find_round(TimePoint deadline);
  // Of a round that is complete without us: nullopt when it is over, or we ended it.
  std::optional<RoundOutcome> enter_late(const Round& round, TimePoint deadline);
  void enter();
  RoundOutcome read_outcome();
  [[noreturn]] void give_up_waiting();

  Wake tend_until(const std::string& goal, TimePoint deadline);
  std::vector<std::string> watched_keys(const std::string& goal) const;
  KeyWatch::Outcome watch(std::vector<std::string> keys, TimePoint deadline);
  void look_after_leader();
  void look_after_all();
  Survey survey();
  void give_up_silent(Survey& survey);
  void give_up(int id);
  void keep_alive();
  bool is_silent(int id, const std::optional<std::string>& beat);
  void decide(const Survey& survey);
  std::optional<RoundOutcome> outcome_of(const Survey& survey);
  bool are_enough(std::size_t present);
  void choose_members(std::vector<Node>& nodes) const;
  std::string wrong_with(const Round& round) const;
  void end_round(RoundEnd::Kind kind, int status, const std::string& text);

  struct Beat {
    std::optional<std::string> value;
    TimePoint seen_at{0};
  };

  Store& store_;
  Runtime& runtime_;
  RoundsOptions options_;
  bool agreed_ = false;          // on the settings
  Node self_;                    // id 0: not enrolled
  int number_ = 1;               // the round to join, or that we are in
  std::size_t expected_ = 0;     // members of the round before
  std::vector<int> member_ids_;  // of the complete round that we are in
  int leader_ = 0;
  std::map<int, Beat> beats_;
  TimePoint decide_at_ = kForever;  // the end of the last call
  std::unique_ptr<Monitor> lock_;   // guards the three below
  std::unique_ptr<KeyWatch> watch_;
  bool cancelled_ = false;
  int beating_id_ = 0;  // self_.id, for the heartbeat
  std::vector<std::string> watched_;
  std::unique_ptr<Task> heartbeat_;  // null: there are no other nodes
};

}  // namespace ddproof
