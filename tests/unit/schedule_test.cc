// Schedules: recorded, written, read, replayed; and everything that must be refused.
#include "simulator/schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "simulator/network.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"
#include "simulator/replay.h"
#include "simulator/simulation.h"
#include "tests/unit/planted_bugs.h"

namespace ddproof::sim {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_schedule(text);
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "accepted";
}

const Schedule kSchedule{0x2a, 300, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}, {40, 7, 8}, {299, 70, 100}}};

// Ranks that sleep, draw, and send each other messages with jitter.
Report run_talkers(std::uint64_t seed, Scheduler& scheduler, int ranks = 4) {
  Simulation simulation({.ranks = ranks, .seed = seed, .scheduler = &scheduler});
  Network network(simulation, {.jitter_max = 100});
  struct Inbox {
    Network& network;
    void arrive(std::uint64_t rank) { network.arrived(0, static_cast<int>(rank), 1); }
  } inbox{network};
  std::vector<Flow> flows(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      for (int i = 0; i < 6; ++i) {
        simulation.sleep(static_cast<Time>(below(simulation.random_u64(rank), 2)));
        const auto to = static_cast<std::size_t>(rank + 1) % flows.size();
        network.send(rank, static_cast<int>(to), 100, flows[to],
                     action_of<&Inbox::arrive>(inbox, to));
      }
    });
  }
  return simulation.run();
}

TEST(Schedule, StoresRunsOfTheSameChoiceOnce) {
  EXPECT_EQ(to_string(Schedule{7, 12, {}}), "s1.7.12..9dd923c4");
  EXPECT_EQ(to_string(kSchedule), "s1.2a.300.ABCClBHIAiImCkDA.c83168a3");
  Schedule repeated{0, 5000, {}};
  for (std::uint64_t i = 0; i < 4000; ++i) repeated.choices.push_back({i, 3, 4});
  EXPECT_LT(to_string(repeated).size(), 30u);
}

TEST(Schedule, ComesBackFromItsText) {
  EXPECT_EQ(parse_schedule(to_string(kSchedule)), kSchedule);
  EXPECT_EQ(parse_schedule(to_string(Schedule{})), Schedule{});
  SplitMix64 random(5);
  for (int run = 0; run < 200; ++run) {
    Schedule schedule{.seed = random.next()};
    const std::uint64_t decisions = below(random.next(), 400);
    for (; schedule.decisions < decisions; ++schedule.decisions) {
      const std::uint64_t count = 2 + below(random.next(), run % 50 + 1);
      const std::uint64_t index = below(random.next(), count);
      if (index != 0) schedule.choices.push_back({schedule.decisions, index, count});
    }
    EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
  }
}

TEST(Schedule, RefusesATextOfAnotherVersion) {
  EXPECT_EQ(refusal("s2.2a.3..00000000"),
            "schedule \"s2.2a.3..00000000\" has version \"s2\"; this build replays version \"s1\"");
  EXPECT_EQ(refusal(""), "schedule \"\" has version \"\"; this build replays version \"s1\"");
}

TEST(Schedule, RefusesATextCutShortAnywhere) {
  const std::string text = to_string(kSchedule);
  EXPECT_EQ(
      refusal(text.substr(0, text.size() - 1)),
      "schedule \"" + text.substr(0, text.size() - 1) + "\" is cut short; copy the whole line");
  for (std::size_t size = 3; size < text.size(); ++size) {
    EXPECT_NE(refusal(text.substr(0, size)).find("is cut short"), std::string::npos) << size;
  }
}

TEST(Schedule, RefusesADamagedText) {
  const std::string text = to_string(kSchedule);
  EXPECT_EQ(refusal("s1.2b" + text.substr(5)),
            "schedule \"s1.2b" + text.substr(5) +
                "\" is damaged: its checksum does not match; copy the line again");
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'A', '1', '.', '~'}) {
      std::string damaged = text;
      damaged[i] = c;
      if (damaged == text) continue;
      EXPECT_NE(refusal(damaged), "accepted") << damaged;
    }
  }
}

TEST(Schedule, RefusesTextAroundIt) {
  EXPECT_NE(refusal(to_string(kSchedule) + "."), "accepted");
  EXPECT_NE(refusal(to_string(kSchedule) + " "), "accepted");
  EXPECT_NE(refusal(" " + to_string(kSchedule)), "accepted");
}

TEST(Replay, GivesTheRecordedRunOfAnyScheduler) {
  RoundRobin round_robin;
  RandomWalk random_walk;
  Pct pct(3, 40);
  for (Scheduler* scheduler : std::initializer_list<Scheduler*>{&round_robin, &random_walk, &pct}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Recorder recorder(*scheduler);
      const Report recorded = run_talkers(seed, recorder);
      const std::string text = to_string(recorder.schedule());
      Replay replay(parse_schedule(text));
      Recorder again(replay);
      EXPECT_EQ(run_talkers(parse_schedule(text).seed, again).digest, recorded.digest);
      EXPECT_NO_THROW(replay.check());
      EXPECT_EQ(to_string(again.schedule()), text);
    }
  }
}

TEST(Replay, RepeatsAFailure) {
  const test::PlantedBug bug = test::planted_bugs()[2];
  RandomWalk walk;
  Recorder recorder(walk);
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::string order = test::order_of_turns(bug, seed, recorder);
    if (!bug.is_hit(order)) continue;
    ++failures;
    Replay replay(parse_schedule(to_string(recorder.schedule())));
    EXPECT_EQ(test::order_of_turns(bug, seed, replay), order);
  }
  EXPECT_GT(failures, 5);
}

TEST(Replay, GoesOnAsStatedAfterAPrefix) {
  const test::PlantedBug bug{0, {8, 8}, nullptr};
  const Schedule prefix{9, 3, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}};
  Replay first(prefix);
  EXPECT_EQ(test::order_of_turns(bug, 9, first), "1110101010101000");
  RandomWalk walk;
  Replay seeded(prefix, &walk);
  const std::string order = test::order_of_turns(bug, 9, seeded);
  EXPECT_EQ(order.substr(0, 3), "111");
  EXPECT_NE(order, "1110101010101000");
  EXPECT_EQ(test::order_of_turns(bug, 9, seeded), order);
}

std::string difference(const Schedule& schedule, std::uint64_t seed, int ranks) {
  Replay replay(schedule);
  run_talkers(seed, replay, ranks);
  try {
    replay.check();
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "none";
}

TEST(Replay, NamesTheFirstDecisionThatDiffers) {
  EXPECT_EQ(
      difference({1, 10, {{0, 3, 4}, {5, 1, 2}}}, 1, 3),
      "schedule of another run: decision 0 chose fiber 4 of 4 runnable ones, now there are 3; "
      "replay it with the program, faults and options it was made with");
  EXPECT_EQ(difference({1, 9999, {}}, 1, 1),
            "schedule of another run: decision 0 never came, the run ended after 0 of 9999 "
            "decisions; replay it with the program, faults and options it was made with");
  EXPECT_EQ(difference({1, 0, {}}, 2, 3),
            "schedule of another run: the run has seed 2, the schedule was recorded with seed 1; "
            "replay it with the program, faults and options it was made with");
}

}  // namespace
}  // namespace ddproof::sim
