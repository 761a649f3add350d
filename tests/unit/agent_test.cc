// Whole jobs of simulated nodes: the agent that `ddproof run` runs, over scripted workers, in
// histories drawn from a seed.
#include "reference/launch/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "simulator/random.h"
#include "tests/support/hooked_store.h"
#include "tests/support/store_world.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What all nodes see of each other's rounds.
struct Seen {
  std::map<int, std::vector<Node>> members;  // by round
  std::map<int, int> running;                // whose workers run, by round; without who may hang
  std::string wrong;
};

// Work that takes `work`, and fails once, after `failure`.
class ScriptedWorkers final : public Workers {
 public:
  ScriptedWorkers(Runtime& runtime, Seen& seen, bool may_hang, Duration work,
                  std::optional<Duration> failure)
      : runtime_(runtime),
        seen_(seen),
        may_hang_(may_hang),
        work_(work),
        failure_(failure),
        monitor_(runtime.make_monitor()) {}

  Meeting open_meeting() override { return {"host", 1}; }

  void start(const Round& round) override {
    const auto& [number, members] = *seen_.members.try_emplace(round.number, round.members).first;
    if (members != round.members) seen_.wrong = "members differ in round " + std::to_string(number);
    round_ = round.number;
    if (may_hang_) return;  // it may have been given up, and begin what is over
    for (const auto& [other, count] : seen_.running) {
      if (other != round_ && count > 0) seen_.wrong = "workers of two rounds run at once";
    }
  }

  WorkersEnd run(const std::function<bool()>& must_stop,
                 const std::function<void(const JobEnd&)>& on_failure) override {
    const Running running{may_hang_ ? ignored_ : seen_.running[round_]};
    if (!wait(must_stop, failure_.value_or(work_))) {
      runtime_.sleep_for(seconds(1));  // they stop
      return {WorkersEnd::Kind::kStopped, {}};
    }
    if (!failure_) return {};
    failure_.reset();
    on_failure({7, "rank 0 exited with status 7"});
    return {WorkersEnd::Kind::kFailed, {}};
  }

  WorkersEnd attend(const std::function<bool()>& until) override {
    while (wait(until, seconds(1000))) {
    }
    return {};
  }

  void wake() override {
    const MonitorLock lock(*monitor_);
    monitor_->notify_all();
  }

 private:
  // False when `until` said so, true when the time passed.
  bool wait(const std::function<bool()>& until, Duration time) {
    const TimePoint deadline = deadline_after(runtime_.now(), time);
    const MonitorLock lock(*monitor_);
    while (!until()) {
      if (!monitor_->wait(deadline, {"workers", CallSite::current(), {}, true, true})) return true;
    }
    return false;
  }

  // However they end.
  struct Running {
    int& count;
    explicit Running(int& counter) : count(counter) { ++count; }
    ~Running() { --count; }
  };

  Runtime& runtime_;
  Seen& seen_;
  bool may_hang_;
  int round_ = 0;
  int ignored_ = 0;
  Duration work_;
  std::optional<Duration> failure_;
  std::unique_ptr<Monitor> monitor_;
};

// How often which end was met, so that histories are known to differ.
using Ends = std::map<std::string, int>;

enum class Fate { kLives, kCrashes, kHangs, kStops };  // the last one goes on after a while

// Empty when all who lived to see the job's end say the same.
std::string wrong_with(const std::vector<std::string>& ends, const std::vector<Fate>& fates,
                       const Seen& seen, Ends& met) {
  std::optional<std::string> job;
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    const std::string& end = ends[static_cast<std::size_t>(rank)];
    const Fate fate = fates[static_cast<std::size_t>(rank)];
    if (fate == Fate::kCrashes || fate == Fate::kHangs ||
        end.find("is one too many") != std::string::npos)
      continue;
    if (end != "0 " && !end.starts_with("7 rank 0"))
      return "host" + std::to_string(rank) + ": " + end;
    if (job.value_or(end) != end) return "ends differ: " + *job + ", " + end;
    job = end;
  }
  ++met[job.value_or("nobody is left").substr(0, 1)];
  if (seen.members.size() > 1) ++met["several rounds"];
  if (std::ranges::find(fates, Fate::kStops) != fates.end()) ++met["stopped"];
  return "";
}

// One job; empty when it ended as it should, else what is wrong.
std::string run_history(std::uint64_t seed, sim::StackPool& stacks, Ends& met) {
  sim::SplitMix64 random(sim::mix64(seed));
  const auto draw = [&](std::uint64_t count) { return static_cast<int>(random.next() % count); };
  const int nodes = 2 + draw(3);
  const int at_most = 1 + draw(static_cast<std::uint64_t>(nodes));
  sim::RandomWalk walk;
  StoreWorld world(nodes, {.seed = seed, .scheduler = &walk, .stacks = &stacks});
  Seen seen;
  std::vector<std::string> ends(static_cast<std::size_t>(nodes));
  std::vector<Fate> fates(static_cast<std::size_t>(nodes));
  std::vector<std::pair<Duration, int>> strikes;
  for (int rank = 0; rank < nodes; ++rank) {
    RoundsOptions options{.nodes_min = 1, .nodes_max = std::max(2, at_most), .max_restarts = 1};
    options.host = "host" + std::to_string(rank);
    options.last_call = seconds(2);
    const std::optional<Duration> failure =
        draw(4) == 0 ? std::optional<Duration>(milliseconds(draw(50'000))) : std::nullopt;
    const int stops_at = 1 + draw(60);
    const Duration stop = milliseconds(5'000 + draw(30'000));
    world.start(rank, milliseconds(draw(4) == 0 ? 0 : draw(40'000)),
                [&, rank, options, failure, stops_at, stop](Runtime& runtime, Store& store) {
                  const Fate fate = fates[static_cast<std::size_t>(rank)];
                  const bool may_hang = fate == Fate::kHangs || fate == Fate::kStops;
                  ScriptedWorkers workers(runtime, seen, may_hang, seconds(60), failure);
                  std::string& end = ends[static_cast<std::size_t>(rank)];
                  try {
                    // Messages take their time, so that nodes act between each other's.
                    int calls = 0;
                    TimePoint stopped_until{0};
                    HookedStore far(store, [&](TimePoint) {
                      runtime.sleep_for(std::chrono::microseconds(runtime.random_u64() % 2'000));
                      // It may stop between any two calls, and is mostly given up then.
                      if (fate == Fate::kStops && ++calls == stops_at)
                        stopped_until = runtime.now() + stop;
                      while (runtime.now() < stopped_until) {
                        runtime.sleep_for(stopped_until - runtime.now());
                      }
                    });
                    Rounds rounds(far, runtime, options);
                    const JobEnd job = run_agent(rounds, workers, runtime);
                    end = std::to_string(job.status) + " " + job.text;
                  } catch (const ConfigError& error) {
                    end = std::string("refused: ") + error.what();
                  } catch (const std::exception& error) {
                    end = std::string("error: ") + error.what();
                  }
                });
    fates[static_cast<std::size_t>(rank)] = static_cast<Fate>(std::max(0, draw(6) - 2));
    strikes.emplace_back(milliseconds(draw(90'000)), rank);
  }
  world.direct([&](Runtime& runtime) {
    std::ranges::sort(strikes);
    for (const auto& [at, rank] : strikes) {
      runtime.sleep_for(at - runtime.now());
      const Fate fate = fates[static_cast<std::size_t>(rank)];
      if (fate == Fate::kCrashes) world.crash(rank);
      if (fate == Fate::kHangs) world.hang(rank);
    }
  });
  world.run();
  if (!seen.wrong.empty()) return seen.wrong;
  return wrong_with(ends, fates, seen, met);
}

TEST(Agent, HistoriesOfNodesThatComeFailAndDieEndWithOneResultForAll) {
  sim::StackPool stacks;
  Ends met;
  constexpr std::uint64_t kHistories = 5'000;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    ASSERT_EQ(run_history(seed, stacks, met), "") << "seed " << seed;
  }
  std::printf(
      "%d histories: %d ended well, %d with a failure, %d with nobody left; %d had several "
      "rounds, %d a node that stopped and went on\n",
      static_cast<int>(kHistories), met["0"], met["7"], met["n"], met["several rounds"],
      met["stopped"]);
  for (const char* end : {"0", "7", "n", "several rounds", "stopped"}) {
    EXPECT_GT(met[end], 100) << end;
  }
}

}  // namespace
}  // namespace ddproof
