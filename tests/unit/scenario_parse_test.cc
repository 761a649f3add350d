// Reading scenarios: what is accepted, and the one line that refuses everything else.
#include <gtest/gtest.h>

#include <string>

#include "backends/api/error.h"
#include "properties/scenario/parse.h"

namespace ddproof::scenario {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_scenario(text, "x.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// With these members besides the least that a scenario needs.
std::string with(const std::string& members) {
  return R"({"fact": "x", "world_size": 4, "expect": {"outcome": "passes"}, )" + members + "}";
}

std::string program(const std::string& steps) {
  return with(R"("programs": {"*": [)" + steps + "]}");
}

std::string under(const std::string& payload, const std::string& steps) {
  return with(R"("payload": ")" + payload + R"(", "programs": {"*": [)" + steps + "]}");
}

TEST(ScenarioFile, WithoutOptionsHasTheDefaults) {
  const Scenario scenario = parse_scenario(program(R"({"do": "barrier"})"), "folder/x.json");
  EXPECT_EQ(scenario.file, "x.json");
  EXPECT_EQ(scenario.placement, Placement());
  EXPECT_EQ(scenario.timeout, std::chrono::minutes(30));
  EXPECT_TRUE(scenario.checked);
  ASSERT_EQ(scenario.schedules.size(), 1u);
  EXPECT_EQ(scenario.program_of(3).size(), 1u);
}

TEST(ScenarioFile, PlacesRanksInBlocksInTurnsOrOneByOne) {
  const auto placement = [](const std::string& key) {
    return parse_scenario(with(R"("programs": {"*": []}, )" + key), "x.json").placement;
  };
  EXPECT_EQ(placement(R"("ranks_per_node": 3)"), (Placement{0, 0, 0, 1}));
  EXPECT_EQ(placement(R"("nodes": [0, 1])"), (Placement{0, 1, 0, 1}));
  EXPECT_EQ(placement(R"("nodes": [2, 0, 0, 1])"), (Placement{2, 0, 0, 1}));
}

TEST(ScenarioFile, WithAPlacementThatCannotBeIsRefused) {
  const auto why = [](const std::string& key) {
    return refusal(with(R"("programs": {"*": []}, )" + key));
  };
  EXPECT_EQ(why(R"("nodes": [0, -1])"), "x.json: nodes[1] is -1; allowed: 0 to 9999");
  EXPECT_EQ(why(R"("nodes": [])"),
            "x.json: nodes is empty; allowed: the nodes of the ranks, in turns");
  EXPECT_EQ(why(R"("nodes": [0, 0, 1, 1, 1])"),
            "x.json: nodes has 5 entries for 4 ranks; allowed: one for each rank, or fewer, which "
            "are taken in turns");
  EXPECT_EQ(why(R"("nodes": [0], "ranks_per_node": 2)"),
            "x.json: nodes stands beside ranks_per_node; give one of them");
  // Three ranks share node 0.
  const std::string step = R"("programs": {"*": [{"do": "if", "local_ranks": "3", "then": []}]}, )";
  EXPECT_EQ(refusal(with(step + R"("nodes": [0, 0, 1, 0])")),
            "x.json: programs.\"*\"[0].local_ranks is \"3\" names local rank 3; allowed: 0 to 2");
}

TEST(ScenarioFile, TheStarStandsForTheRanksThatNobodyNames) {
  const Scenario scenario =
      parse_scenario(with(R"("programs": {"*": [], "0,3": [{"do": "barrier"}]})"), "x.json");
  EXPECT_EQ(scenario.program_of(0).size(), 1u);
  EXPECT_EQ(scenario.program_of(1).size(), 0u);
  EXPECT_EQ(scenario.program_of(3).size(), 1u);
}

TEST(ScenarioFile, HasBuffersOfAnySizeWhereTheirBytesAreLeftOut) {
  const std::string large = R"({"do": "all_reduce", "dtype": "float64", "count": 4294967297})";
  EXPECT_EQ(refusal(under("sizes", large)), "accepted");
  EXPECT_EQ(refusal(under("hashed", large)),
            "x.json: programs.\"*\"[0].count is 4294967297; allowed: 0 to 268435456");
  EXPECT_EQ(refusal(under("sizes", R"({"do": "all_gather", "count": 4294967297})")),
            "x.json: programs.\"*\"[0].count is 4294967297; allowed: 0 to 268435456");
  EXPECT_EQ(refusal(under("sizes", R"({"do": "send", "shape": [1099511627776, 9], "to": 1})")),
            "x.json: programs.\"*\"[0] needs 158329674399744 bytes over all ranks; allowed: "
            "35184372088832");
  EXPECT_EQ(refusal(under("sizes", R"({"do": "send", "shape": [16777217],
                                       "strides": [1099511627776], "to": 1})")),
            "x.json: programs.\"*\"[0].shape is no layout: it reaches over more than 2^63 - 1 "
            "elements");
}

TEST(ScenarioFile, AsksNoValuesOfAPayloadThatHasNone) {
  const auto call = [](int count, const std::string& key) {
    return R"({"do": "all_reduce", "dtype": "int8", ")" + key + R"(": 1, "count": )" +
           std::to_string(count) + "}";
  };
  for (const std::string payload : {"hashed", "sizes"}) {
    EXPECT_EQ(refusal(under(payload, call(1024, "expect"))), "accepted");
    EXPECT_EQ(refusal(under(payload, call(1025, "expect"))),
              "x.json: programs.\"*\"[0].expect has no meaning: with payload \"" + payload +
                  "\" a call of more than 1024 bytes has no values; leave it out, or use payload "
                  "\"real\"");
  }
  EXPECT_EQ(refusal(under("hashed", call(1025, "value"))), "accepted");
  EXPECT_NE(refusal(under("sizes", call(1025, "value"))), "accepted");
}

TEST(ScenarioFile, DurationsAreExact) {
  const Scenario scenario = parse_scenario(
      program(R"({"do": "sleep", "for": "0.1 s"}, {"do": "sleep", "for": "2.5 us"})"), "x.json");
  const Steps& steps = scenario.program_of(0);
  EXPECT_EQ(std::get<PassTime>(steps[0].action).duration, std::chrono::milliseconds(100));
  EXPECT_EQ(std::get<PassTime>(steps[1].action).duration, Duration(2500));
}

TEST(ScenarioFile, ThatIsNoJsonIsRefused) {
  EXPECT_EQ(refusal(""), "x.json: is empty; a scenario is a JSON object");
  EXPECT_EQ(refusal(" \n"), "x.json: is empty; a scenario is a JSON object");
  EXPECT_EQ(refusal("[]"), "x.json: the scenario is a list; allowed: an object");
  EXPECT_TRUE(refusal("{\n  \"fact\": }").starts_with("x.json: line 2, column 11: no JSON: "))
      << refusal("{\n  \"fact\": }");
  EXPECT_EQ(refusal(R"({"world_size": 1e999})"),
            "x.json: no JSON: number overflow parsing '1e999'");
  EXPECT_EQ(refusal(std::string("{}\n\0 {}", 6)), "x.json: line 2, column 1: no JSON: a zero byte");
  EXPECT_EQ(refusal(R"({"fact": "\u001b[2J", "world_size": 1, "programs": {}})"),
            "x.json: fact has a control character");
  EXPECT_EQ(refusal(R"({"fact": "x", "fact": "y"})"),
            "x.json: the key \"fact\" stands twice in one object");
}

TEST(ScenarioFile, ThatIsHugeIsRefused) {
  EXPECT_EQ(refusal(std::string(4194305, '[')),
            "x.json: is 4194305 bytes; a scenario has at most 4194304");
  EXPECT_EQ(refusal(std::string(1000000, '[')), "x.json: nested deeper than 32");
  EXPECT_EQ(refusal(program(R"({"do": "repeat", "times": 1000000, "steps": [
                {"do": "repeat", "times": 1000000, "steps": [{"do": "barrier"}]}]})")),
            "x.json: programs take up to 8000004000000 steps over all ranks, repeats unrolled; "
            "allowed: 10000000");
  EXPECT_EQ(refusal(program(R"({"do": "all_reduce", "count": 268435456})")),
            "x.json: programs.\"*\"[0] needs 4294967296 bytes over all ranks; allowed: 1073741824");
  EXPECT_EQ(refusal(program(R"({"do": "reduce", "shape": [2], "strides": [268435456]})")),
            "x.json: programs.\"*\"[0] needs 4294967312 bytes over all ranks; allowed: 1073741824");
}

TEST(ScenarioFile, WithAnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(
      refusal(with(R"("programs": {"*": []}, "time_out": "1 s")")),
      "x.json: time_out is not known; allowed: fact, source, world_size, ranks_per_node, "
      "nodes, timeout, event_limit, checked, timeouts_end_deadlocks, fidelity, payload, network, "
      "compute, training, drawn_faults, faults, liveness, schedules, groups, programs, expect, "
      "probes; did "
      "you mean \"timeout\"?");
  EXPECT_EQ(
      refusal(program(R"({"do": "barrier", "labl": "x"})")),
      "x.json: programs.\"*\"[0].labl is not known; allowed: do, group, label, timeout, at; did "
      "you mean \"label\"?");
  EXPECT_TRUE(refusal(program(R"({"do": "barier"})")).ends_with("; did you mean \"barrier\"?"));
  EXPECT_EQ(refusal(program(R"({"label": "x"})")), "x.json: programs.\"*\"[0] lacks \"do\"");
}

TEST(ScenarioFile, WithAProbeThatNothingHitsIsRefused) {
  const auto why = [](const std::string& probes) {
    return refusal(with(R"("programs": {"*": []}, "probes": [)" + probes + "]"));
  };
  EXPECT_EQ(why(R"("crash inside reduce_scatter", "padding with more ranks than samples")"),
            "accepted");
  const std::string wrong = why(R"("hang inside barrier", "crash inside all_redcue")");
  EXPECT_TRUE(wrong.starts_with(R"(x.json: probes[1] is "crash inside all_redcue"; allowed: )"))
      << wrong;
  EXPECT_TRUE(wrong.ends_with(R"(; did you mean "crash inside all_reduce"?)")) << wrong;
}

TEST(ScenarioFile, WithGroupsThatCannotBeIsRefused) {
  const auto why = [](const std::string& groups) {
    return refusal(with(R"("programs": {"*": []}, "groups": )" + groups));
  };
  EXPECT_EQ(why(R"({"tp": [0, 1], "dp": [3]})"), "accepted");
  EXPECT_EQ(why(R"([0])"), "x.json: groups is a list; allowed: an object");
  EXPECT_EQ(why(R"({"": [0]})"), R"(x.json: groups."" has no name; a group needs one)");
  EXPECT_EQ(why(R"({"tp": []})"),
            "x.json: groups.tp is empty; allowed: the ranks of the group, one or more");
  EXPECT_EQ(why(R"({"tp": [0, 4]})"), "x.json: groups.tp[1] is 4; allowed: 0 to 3");
  EXPECT_EQ(why(R"({"tp": [2, 0, 2]})"), "x.json: groups.tp[2] names rank 2 twice");
}

TEST(ScenarioFile, WithACallInAGroupOfOthersIsRefused) {
  const auto why = [](const std::string& programs) {
    return refusal(with(R"("groups": {"tp": [0, 2], "dp": [1, 3]}, "programs": )" + programs));
  };
  const std::string tp = R"({"do": "barrier", "group": "tp"})";
  EXPECT_EQ(why(R"({"0,2": [)" + tp + R"(], "*": [{"do": "barrier", "group": "dp"}]})"),
            "accepted");
  EXPECT_EQ(why(R"({"*": [{"do": "if", "ranks": "0-1", "then": [{"do": "if", "ranks": "1",
                   "then": [], "else": [)" +
                tp + "]}]}]}"),
            "accepted");
  EXPECT_EQ(why(R"({"0": [], "*": [)" + tp + "]}"),
            R"(x.json: programs."*"[0].group is for group "tp", of which rank 1 is no member; )"
            "its members: 0, 2");
  EXPECT_EQ(
      why(R"({"*": [{"do": "if", "ranks": "0", "result": 1, "then": [], "else": [)" + tp + "]}]}"),
      R"(x.json: programs."*"[0].else[0].group is for group "tp", of which rank 1 is no )"
      "member; its members: 0, 2");
  EXPECT_EQ(why(R"({"*": [], "0": [{"do": "broadcast", "group": "tp", "root": 1}]})"),
            R"(x.json: programs.0[0].root is for group "tp", of which rank 1 is no member; )"
            "its members: 0, 2");
  EXPECT_EQ(why(R"({"*": [], "0": [{"do": "barrier", "group": "tpp"}]})"),
            R"(x.json: programs.0[0].group is "tpp"; allowed: tp, dp; did you mean "tp"?)");
  EXPECT_EQ(refusal(program(tp)),
            R"(x.json: programs."*"[0].group is "tp", but the scenario has no groups; add )"
            R"("groups": {"tp": [0, 1]})");
}

TEST(ScenarioFile, WithAMisspelledKeyThatItNeedsIsToldOfTheSpelling) {
  EXPECT_EQ(refusal(R"({"fact": "x", "wrold_size": 2})"),
            "x.json: wrold_size is not known; did you mean \"world_size\"?");
  EXPECT_EQ(refusal(program(R"({"do": "repeat", "time": 2, "steps": []})")),
            "x.json: programs.\"*\"[0].time is not known; did you mean \"times\"?");
  // Another key that the reader has not come to yet is not taken for one.
  EXPECT_EQ(refusal(program(R"({"do": "send", "tag": 1})")),
            "x.json: programs.\"*\"[0] lacks \"to\"");
}

TEST(ScenarioFile, WithAWrongNumberOrTypeIsRefused) {
  EXPECT_EQ(refusal(program(R"({"do": "all_reduce", "count": -3})")),
            "x.json: programs.\"*\"[0].count is -3; allowed: 0 to 268435456");
  EXPECT_EQ(refusal(program(R"({"do": "all_reduce", "count": "3"})")),
            "x.json: programs.\"*\"[0].count is \"3\"; allowed: 0 to 268435456");
  EXPECT_EQ(refusal(program(R"({"do": "all_reduce", "dtype": "int8", "value": 128})")),
            "x.json: programs.\"*\"[0].value is 128; allowed: what int8 holds");
  EXPECT_EQ(refusal(program(R"({"do": "broadcast", "root": 4})")),
            "x.json: programs.\"*\"[0].root is 4; allowed: 0 to 3");
  EXPECT_EQ(refusal(program(R"("barrier")")),
            "x.json: programs.\"*\"[0] is \"barrier\"; allowed: an object");
  for (const std::string duration : {"-1 s", ". s", " s"}) {
    EXPECT_EQ(refusal(program(R"({"do": "sleep", "for": ")" + duration + "\"}")),
              "x.json: programs.\"*\"[0].for is \"" + duration +
                  "\"; allowed: a number of 0 or more and a unit, as in \"1801 s\"; units: ns, us, "
                  "ms, s, min, h; at most 1000000 h");
  }
  EXPECT_EQ(refusal(program(R"({"do": "barrier", "timeout": "0 s"})")),
            "x.json: programs.\"*\"[0].timeout is \"0 s\"; allowed: more than 0");
  EXPECT_EQ(refusal(program(R"({"do": "train"})")),
            "x.json: programs.\"*\"[0] lacks \"batches\", which is needed outside of a sampler's "
            "\"each\"");
  EXPECT_EQ(
      refusal(
          program(R"({"do": "sampler", "length": 4, "each": [{"do": "train", "join": true}]})")),
      "x.json: programs.\"*\"[0].each[0].join needs \"batches\": each rank's own number of steps");
  EXPECT_EQ(
      refusal(program(R"({"do": "train", "batches": [1], "throw_on_early_termination": true})")),
      "x.json: programs.\"*\"[0].throw_on_early_termination is an option of join; add \"join\": "
      "true");
  EXPECT_EQ(refusal(with(R"("programs": {"*": []}, "training": {"momentum": 1})")),
            "x.json: training.momentum is 1; allowed: 0 or more, less than 1");
  EXPECT_EQ(refusal(program(R"({"do": "if", "turns": "0", "then": []})")),
            "x.json: programs.\"*\"[0].turns stands in no repeat or sampler");
  EXPECT_EQ(refusal(program(R"({"do": "barrier", "at": "train.py"})")),
            "x.json: programs.\"*\"[0].at is \"train.py\"; allowed: a file and a line, as in "
            "\"train.py:88\"");
}

TEST(ScenarioFile, TellsHowItTrains) {
  const auto text = [](const std::string& options) {
    const std::string step = R"({"do": "train", "batches": [1])" + options + "}";
    return parse_scenario(program(step), "x.json").program_of(0).front().text;
  };
  EXPECT_EQ(text(""), "train");
  EXPECT_EQ(text(R"(, "join": true)"), "train in join");
  EXPECT_EQ(text(R"(, "unused_parameters": true)"), "train with unused parameters");
  EXPECT_EQ(text(R"(, "unused_parameters": true, "join": true)"),
            "train in join, with unused parameters");
}

TEST(ScenarioFile, OfAWorldThatCannotBeIsRefused) {
  const auto world = [](const std::string& size) {
    return refusal(R"({"fact": "x", "world_size": )" + size + "}");
  };
  EXPECT_EQ(world("0"), "x.json: world_size is 0; allowed: 1 to 10000");
  EXPECT_EQ(world("-2"), "x.json: world_size is -2; allowed: 1 to 10000");
  EXPECT_EQ(world("2.5"), "x.json: world_size is 2.5; allowed: 1 to 10000");
  EXPECT_EQ(world("100000"),
            "x.json: world_size is 100000, which needs about 26500 MB and 600000 memory mappings, "
            "of which a process has 65530; allowed: 1 to 10000");
}

TEST(ScenarioFile, WithSchedulesThatCannotBeIsRefused) {
  const auto schedules = [](const std::string& list) {
    return refusal(with("\"programs\": {\"*\": []}, \"schedules\": [" + list + "]"));
  };
  EXPECT_EQ(schedules(""), "x.json: schedules is empty; allowed: one schedule or more");
  EXPECT_EQ(schedules(R"({"scheduler": "exhaustiv"})"),
            "x.json: schedules[0].scheduler is \"exhaustiv\"; allowed: round robin, random, pct, "
            "exhaustive, campaign; did you mean \"exhaustive\"?");
  EXPECT_EQ(schedules(R"({"scheduler": "random", "depth": 3})"),
            "x.json: schedules[0].depth is not known; allowed: scheduler, runs");
  EXPECT_EQ(schedules(R"({"scheduler": "campaign", "runs": 0})"),
            "x.json: schedules[0].runs is 0; allowed: 1 to 1000000");
  EXPECT_EQ(refusal(with(R"("programs": {"*": []}, "drawn_faults": "9-1")")),
            "x.json: drawn_faults is \"9-1\" has the range 9-1, which runs backwards");
}

TEST(ScenarioFile, WithAFaultThatCannotBeIsRefused) {
  const auto fault = [](const std::string& text) {
    return refusal(with(R"("programs": {"*": []}, "faults": [")" + text + "\"]"));
  };
  EXPECT_EQ(
      fault("crash rank=2"),
      "x.json: faults[0] is no fault: fault \"crash rank=2\": expected \"operation=NUMBER\" at "
      "its end; the form is \"crash rank=RANK operation=NUMBER\"");
  EXPECT_TRUE(fault("crash rank=9 operation=1").starts_with("x.json: faults[0] is no fault: "));
}

TEST(ScenarioFile, MayAskForProgressOnceTheFaultsAreOver) {
  const auto liveness = [](const std::string& members) {
    return R"({"fact": "x", "world_size": 4, "liveness": {)" + members +
           R"(}, "programs": {"*": []}, "expect": {"outcome": "passes"}})";
  };
  const Scenario all =
      parse_scenario(liveness(R"("faults_stop": "1 s", "within": "2 s")"), "x.json");
  EXPECT_EQ(all.liveness->faults_stop, 1'000'000'000);
  EXPECT_EQ(all.liveness->within, 2'000'000'000);
  EXPECT_EQ(all.liveness->core, (std::vector<int>{0, 1, 2, 3}));
  const Scenario some = parse_scenario(
      liveness(R"("faults_stop": "1 s", "within": "2 s", "core": "3,0-1")"), "x.json");
  EXPECT_EQ(some.liveness->core, (std::vector<int>{0, 1, 3}));
  for (const std::string wrong :
       {R"("faults_stop": "1 s")", R"("within": "1 s")", R"("faults_stop": "1 s", "within": "0 s")",
        R"("faults_stop": "1 s", "within": "1 s", "core": "4")"}) {
    EXPECT_THROW(parse_scenario(liveness(wrong), "x.json"), ConfigError) << wrong;
  }
}

TEST(ScenarioFile, WithRanksOutOfPlaceIsRefused) {
  const auto programs = [](const std::string& members) {
    return refusal(with("\"programs\": {" + members + "}"));
  };
  EXPECT_EQ(programs(R"("0-2": [], "2-3": [])"),
            "x.json: programs.\"2-3\" names rank 2, which has a program already");
  EXPECT_EQ(programs(R"("0-2": [])"),
            "x.json: programs has none for rank 3; add it, or \"*\" for all others");
  EXPECT_EQ(programs(R"("0-4": [])"),
            "x.json: programs has a wrong key: \"0-4\" names rank 4; allowed: 0 to 3");
  EXPECT_EQ(programs(R"("3-1": [])"),
            "x.json: programs has a wrong key: \"3-1\" has the range 3-1, which runs backwards");
  EXPECT_EQ(programs(R"("0,0-3": [])"),
            "x.json: programs has a wrong key: \"0,0-3\" names rank 0 twice");
  for (const char* key : {"", "-1", "a", "0-", "0,", "1.0", " 1"}) {
    EXPECT_EQ(programs("\"" + std::string(key) + "\": []"),
              "x.json: programs has a wrong key: \"" + std::string(key) +
                  "\" names no ranks; allowed: \"0\", \"1-3\", \"0,4-7\", \"*\", within 0 to 3");
  }
  EXPECT_EQ(refusal(program(R"({"do": "if", "ranks": "9", "then": []})")),
            "x.json: programs.\"*\"[0].ranks is \"9\" names rank 9; allowed: 0 to 3");
}

}  // namespace
}  // namespace ddproof::scenario
