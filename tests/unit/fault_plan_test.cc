// Faults as data: the text forms, and what a plan does to operations and sleeps.
#include "simulator/fault_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/plan_faults.h"

namespace ddproof::sim {
namespace {

// One of each kind, in the order of FaultKind.
const std::vector<std::string> kTexts = {
    "crash rank=2 operation=7",
    "hang rank=2 operation=7",
    "slow rank=1 factor=4 delay=2us",
    "delay from=1 to=2 message=3 time=1ms",
    "drop from=1 to=2 message=3",
    "duplicate from=1 to=2 message=3",
    "reorder from=1 to=2 message=3 time=1ms",
    "truncate from=1 to=2 message=3 bytes=8",
    "flip from=1 to=2 message=3 bit=77",
    "partition ranks=0,1 start=1ms end=2ms",
    "short-write rank=0 write=4 bytes=10",
    "full-disk rank=0 write=4",
    "failed-sync rank=0 sync=2",
    "power-cut rank=0 change=5 seed=9",
    "clock-jump rank=1 start=1ms by=-3s",
};

std::string plan_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(FaultPlan, EveryKindIsPrintedAndParsedBack) {
  ASSERT_EQ(kTexts.size(), static_cast<std::size_t>(kFaultKindCount));
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    const Fault fault = parse_fault(kTexts[i]);
    EXPECT_EQ(fault.kind, static_cast<FaultKind>(i));
    EXPECT_EQ(to_string(fault), kTexts[i]);
    EXPECT_TRUE(kTexts[i].starts_with(to_string(fault.kind)));
  }
}

TEST(FaultPlan, ReadsTheFields) {
  EXPECT_EQ(parse_fault("crash rank=2 operation=7"),
            (Fault{.kind = FaultKind::kCrash, .rank = 2, .number = 7}));
  EXPECT_EQ(parse_fault("  truncate from=1  to=2 message=3 bytes=8 "),
            (Fault{.kind = FaultKind::kTruncate, .rank = 1, .peer = 2, .number = 3, .amount = 8}));
  EXPECT_EQ(parse_fault("partition ranks=0,3 start=1500ns end=never"),
            (Fault{.kind = FaultKind::kPartition, .start = 1'500, .ranks = {0, 3}}));
  EXPECT_EQ(parse_fault("clock-jump rank=0 start=0ns by=-3s").time, -3'000'000'000);
}

TEST(FaultPlan, TimesArePrintedInTheLargestExactUnit) {
  for (const char* time : {"0ns", "1ns", "1001ns", "1us", "1001us", "1ms", "1s", "3600s"}) {
    const std::string text = std::string("delay from=0 to=1 message=1 time=") + time;
    EXPECT_EQ(to_string(parse_fault(text)), text);
  }
  EXPECT_EQ(to_string(parse_fault("slow rank=0 factor=1 delay=2000000ns")),
            "slow rank=0 factor=1 delay=2ms");
}

TEST(FaultPlan, AWholePlanIsPrintedAndParsedBack) {
  FaultPlan plan;
  for (const std::string& text : kTexts) plan.push_back(parse_fault(text));
  EXPECT_EQ(parse_fault_plan(to_string(plan)), plan);
  EXPECT_EQ(to_string(parse_fault_plan("drop from=0 to=1 message=1;hang rank=1 operation=2")),
            "drop from=0 to=1 message=1; hang rank=1 operation=2");
  EXPECT_TRUE(parse_fault_plan("  ").empty());
}

TEST(FaultPlan, SaysWhatIsWrongAndWhatIsAllowed) {
  const std::string allowed =
      "expected one of crash, hang, slow, delay, drop, duplicate, reorder, truncate, flip, "
      "partition, short-write, full-disk, failed-sync, power-cut, clock-jump";
  EXPECT_EQ(plan_error([] { parse_fault("crush rank=2"); }),
            "fault \"crush rank=2\": \"crush\" is no fault, " + allowed);
  EXPECT_EQ(plan_error([] { parse_fault(" "); }), "fault \" \": it is empty, " + allowed);
  EXPECT_EQ(plan_error([] { parse_fault_plan("hang rank=0 operation=1 ; a ;"); }),
            "fault \"a\": \"a\" is no fault, " + allowed);
  EXPECT_EQ(plan_error([] { parse_fault_plan("hang rank=0 operation=1; "); }),
            "fault 2 of \"hang rank=0 operation=1; \" is empty: " + allowed);
  EXPECT_EQ(plan_error([] { parse_fault_plan(";"); }), "fault 1 of \";\" is empty: " + allowed);
  EXPECT_EQ(plan_error([] { parse_fault("crash rank=2"); }),
            "fault \"crash rank=2\": expected \"operation=NUMBER\" at its end; the form is \"crash "
            "rank=RANK operation=NUMBER\"");
  EXPECT_EQ(plan_error([] { parse_fault("crash operation=7 rank=2"); }),
            "fault \"crash operation=7 rank=2\": expected \"rank=RANK\" where it says "
            "\"operation=7\"; the form is \"crash rank=RANK operation=NUMBER\"");
  EXPECT_EQ(plan_error([] { parse_fault("full-disk rank=0 write=1 now"); }),
            "fault \"full-disk rank=0 write=1 now\": nothing may follow \"write=1\"; the form is "
            "\"full-disk rank=RANK write=NUMBER\"");
}

TEST(FaultPlan, RefusesValuesThatMeanNothing) {
  const auto why = [](const std::string& text) {
    const std::string error = plan_error([&] { parse_fault(text); });
    return error.substr(std::min(error.size(), text.size() + 10));
  };
  EXPECT_EQ(why("crash rank=-1 operation=7"), "rank is \"-1\"; it takes a rank, 0 or more");
  EXPECT_EQ(why("crash rank=2x operation=7"), "rank is \"2x\"; it takes a rank, 0 or more");
  EXPECT_EQ(why("crash rank=2 operation=0"), "operation is \"0\"; it takes a count, 1 or more");
  EXPECT_EQ(why("slow rank=1 factor=0 delay=1us"),
            "factor is \"0\"; it takes a whole number, 1 or more");
  EXPECT_EQ(why("flip from=0 to=1 message=1 bit="),
            "bit is \"\"; it takes a whole number, 0 or more");
  EXPECT_EQ(why("slow rank=1 factor=2 delay=-1us"),
            "delay is \"-1us\"; it takes a whole number of ns, us, ms or s, such as 10us");
  EXPECT_EQ(why("slow rank=1 factor=2 delay=5"),
            "delay is \"5\"; it takes a whole number of ns, us, ms or s, such as 10us");
  EXPECT_EQ(why("slow rank=1 factor=2 delay=9999999999s"),
            "delay is \"9999999999s\"; it takes a whole number of ns, us, ms or s, such as 10us");
  EXPECT_EQ(why("partition ranks=1,0 start=0ns end=never"),
            "ranks is \"1,0\"; it takes ascending ranks such as 0,1");
  EXPECT_EQ(why("partition ranks=0 start=2us end=1us"),
            "end is \"1us\"; it takes a time such as 10us, not before the start, or never");
}

TEST(FaultPlan, RefusesRanksThatTheWorldLacks) {
  const auto why = [](const char* text, int ranks) {
    return plan_error([&] { check_fault_plan({parse_fault(text)}, ranks); });
  };
  EXPECT_EQ(why("crash rank=2 operation=1", 3), "none");
  EXPECT_EQ(why("crash rank=3 operation=1", 3),
            "fault \"crash rank=3 operation=1\": rank 3 is not in a world of 3 ranks");
  EXPECT_EQ(why("drop from=0 to=1 message=1", 1),
            "fault \"drop from=0 to=1 message=1\": rank 1 is not in a world of 1 rank");
  EXPECT_EQ(why("partition ranks=0,5 start=0ns end=never", 4),
            "fault \"partition ranks=0,5 start=0ns end=never\": rank 5 is not in a world of 4 "
            "ranks");
}

// Runs `body` on both ranks of a world under the plan.
Report run_under(PlanFaults& faults, const std::function<void(Simulation&, int)>& body) {
  Simulation simulation({.ranks = 2, .faults = &faults});
  faults.watch(simulation);
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] { body(simulation, rank); });
  }
  return simulation.run();
}

TEST(PlanFaults, CrashAndHangStrikeAtTheirOperation) {
  PlanFaults faults(parse_fault_plan("crash rank=0 operation=2; hang rank=1 operation=3"));
  std::vector<int> begun(2);
  const Report report = run_under(faults, [&](Simulation& simulation, int rank) {
    for (int i = 0; i < 5; ++i) {
      simulation.begin_operation("step", __FILE__, __LINE__);
      ++begun[rank];
    }
  });
  EXPECT_EQ(begun, (std::vector<int>{1, 2}));
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kCrashed);
  EXPECT_EQ(report.ranks[1].outcome, RankOutcome::kHung);
  EXPECT_EQ(faults.fired().size(), 2u);
}

TEST(PlanFaults, SlowStretchesTheSleepsOfItsRankOnly) {
  PlanFaults faults(parse_fault_plan("slow rank=1 factor=3 delay=0ns"));
  std::vector<Time> ends(2);
  run_under(faults, [&](Simulation& simulation, int rank) {
    simulation.sleep(1'000);
    ends[rank] = simulation.now();
  });
  EXPECT_EQ(ends, (std::vector<Time>{1'000, 3'000}));
}

TEST(PlanFaults, TellsWhichFaultsTookEffectOnceAndInOrder) {
  struct Faults : TraceSink {
    void on_event(const Event& event) override {
      if (event.kind == EventKind::kFault) texts.push_back(to_string(event));
    }
    std::vector<std::string> texts;
  } trace;
  PlanFaults faults(
      parse_fault_plan("hang rank=0 operation=9; clock-jump rank=1 start=2us by=1s; slow rank=0 "
                       "factor=2 delay=0ns"));
  Simulation simulation({.ranks = 2, .faults = &faults, .trace = &trace});
  faults.watch(simulation);
  simulation.spawn(0, "main", [&] {
    EXPECT_EQ(faults.on_wall_clock(1), 0);
    simulation.sleep(1'000);
    simulation.sleep(1'000);
    EXPECT_EQ(faults.on_wall_clock(0), 0);
    EXPECT_EQ(faults.on_wall_clock(1), 1'000'000'000);
    EXPECT_EQ(faults.on_wall_clock(1), 1'000'000'000);
  });
  simulation.run();
  EXPECT_EQ(to_string(faults.fired()),
            "slow rank=0 factor=2 delay=0ns; clock-jump rank=1 start=2us by=1s");
  EXPECT_EQ(trace.texts, (std::vector<std::string>{
                             "0 ns rank 0 fiber 1 fault 3 slow rank=0 factor=2 delay=0ns",
                             "4 us rank 1 fiber 1 fault 2 clock-jump rank=1 start=2us by=1s"}));
}

}  // namespace
}  // namespace ddproof::sim
