// The traces that people read: Chrome's format and where two logs first differ.
#include "simulator/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/fault.h"
#include "simulator/simulation.h"

namespace ddproof::sim {
namespace {

using nlohmann::json;

// What a run of two ranks gives: rank 1 waits in an operation with a name that needs escapes.
json trace_of_two_ranks() {
  std::ostringstream out;
  {
    ChromeTrace trace(out);
    Simulation simulation({.ranks = 2, .trace = &trace});
    simulation.spawn(0, "main", [&] { simulation.sleep(1'500); });
    simulation.spawn(1, "main", [&] {
      simulation.begin_operation("all_reduce \"grad\\1\"\n", "x.cc", 7);
      simulation.sleep(2'001, "a bucket");
      simulation.begin_operation("barrier", "x.cc", 8);
    });
    simulation.run();
  }
  return json::parse(out.str());
}

std::vector<json> events_with(const json& trace, const std::string& phase) {
  std::vector<json> result;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) result.push_back(event);
  }
  return result;
}

TEST(ChromeTrace, ARankIsAProcessAndAFiberAThread) {
  std::map<std::pair<int, std::string>, std::string> names;
  for (const json& event : events_with(trace_of_two_ranks(), "M")) {
    if (!event.at("args").contains("name")) continue;
    const std::string thread =
        event.contains("tid") ? std::to_string(event.at("tid").get<int>()) : "";
    names[{event.at("pid"), thread}] = event.at("args").at("name");
  }
  const std::map<std::pair<int, std::string>, std::string> expected{
      {{0, ""}, "rank 0"}, {{0, "0"}, "messages"}, {{0, "1"}, "main"},
      {{1, ""}, "rank 1"}, {{1, "0"}, "messages"}, {{1, "2"}, "main"}};
  EXPECT_EQ(names, expected);
}

TEST(ChromeTrace, OperationsAndWaitsAreNestedSlices) {
  const json trace = trace_of_two_ranks();
  std::string slices;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if ((phase != "B" && phase != "E") || event.at("pid") != 1) continue;
    slices += phase + " " + event.at("ts").dump();
    if (phase == "B") slices += " " + event.at("name").get<std::string>();
    slices += ";";
  }
  EXPECT_EQ(
      slices,
      "B 0.0 all_reduce \"grad\\1\"\n;B 0.0 a bucket;E 2.001;E 2.001;B 2.001 barrier;E 2.001;");
}

// Messages as the network records them.
void send(ChromeTrace& trace, Time time, int from, int to, std::uint64_t bytes) {
  trace.on_event(
      {.time = time, .kind = EventKind::kSend, .rank = from, .peer = to, .value = bytes});
}
void deliver(ChromeTrace& trace, Time time, int from, int to, std::uint64_t bytes) {
  trace.on_event(
      {.time = time, .kind = EventKind::kDeliver, .rank = to, .peer = from, .value = bytes});
}

TEST(ChromeTrace, AnArrowLeadsFromEachSendToItsDelivery) {
  std::ostringstream out;
  {
    ChromeTrace trace(out);
    send(trace, 10, 0, 1, 100);
    send(trace, 20, 0, 1, 200);
    trace.on_event({.time = 20, .kind = EventKind::kDrop, .rank = 0, .peer = 1, .value = 200});
    send(trace, 25, 1, 0, 400);
    send(trace, 30, 0, 1, 300);
    deliver(trace, 40, 0, 1, 100);
    deliver(trace, 50, 0, 1, 300);
    deliver(trace, 60, 0, 1, 300);  // a copy
    deliver(trace, 70, 1, 0, 400);
  }
  const json trace = json::parse(out.str());
  std::map<int, double> sent;
  std::map<double, double> arrows;
  for (const json& event : events_with(trace, "s")) sent[event.at("id")] = event.at("ts");
  for (const json& event : events_with(trace, "f")) {
    arrows[sent.at(event.at("id"))] = event.at("ts");
  }
  EXPECT_EQ(arrows, (std::map<double, double>{{0.01, 0.04}, {0.03, 0.05}, {0.025, 0.07}}));
  EXPECT_EQ(events_with(trace, "X").size(), 8U);
}

struct HangRankOne : FaultHook {
  RankFate on_operation(int rank, std::uint64_t) override {
    return rank == 1 ? RankFate::kHangs : RankFate::kLives;
  }
};

TEST(ChromeTrace, WhatADeadRankLeftOpenIsEnded) {
  std::ostringstream out;
  {
    ChromeTrace trace(out);
    HangRankOne faults;
    Simulation simulation({.ranks = 2, .faults = &faults, .trace = &trace});
    for (int rank = 0; rank < 2; ++rank) {
      simulation.spawn(rank, "main", [&] {
        simulation.begin_operation("barrier", "x.cc", 1);
        simulation.sleep(10);
      });
    }
    simulation.run();
  }
  const json trace = json::parse(out.str());
  EXPECT_EQ(events_with(trace, "B").size(), events_with(trace, "E").size());
  std::string instants;
  for (const json& event : events_with(trace, "i")) {
    instants += event.at("name").get<std::string>() + ";";
  }
  EXPECT_NE(instants.find("hang;"), std::string::npos) << instants;
}

std::optional<std::string> difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  return first_difference(a, b, 2);
}

TEST(FirstDifference, NamesTheLineAndShowsWhatCameBefore) {
  EXPECT_EQ(difference("a\nb\n", "a\nb\n"), std::nullopt);
  EXPECT_EQ(difference("", ""), std::nullopt);
  EXPECT_EQ(difference("a\nb\nc\nd\ne\n", "a\nb\nc\nx\ne\n"),
            "first difference in line 4:\n  b\n  c\n- d\n+ x\n");
  EXPECT_EQ(difference("a\n", "a\nb\n"),
            "first difference in line 2:\n  a\n- (the log ends here)\n+ b\n");
  EXPECT_EQ(difference("a\n", ""), "first difference in line 1:\n- a\n+ (the log ends here)\n");
}

TEST(FirstDifference, TwoRunsOfOneSeedHaveNone) {
  const auto log = [](std::uint64_t seed) {
    std::ostringstream out;
    TextTrace trace(out);
    RandomWalk scheduler;
    Simulation simulation({.ranks = 4, .seed = seed, .scheduler = &scheduler, .trace = &trace});
    for (int rank = 0; rank < 4; ++rank) {
      simulation.spawn(rank, "main", [&] {
        for (int i = 0; i < 5; ++i) simulation.sleep(0);
      });
    }
    simulation.run();
    return out.str();
  };
  EXPECT_EQ(difference(log(1), log(1)), std::nullopt);
  EXPECT_NE(difference(log(1), log(2)), std::nullopt);
}

}  // namespace
}  // namespace ddproof::sim
