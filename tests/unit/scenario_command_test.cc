// The scenario subcommand: what it ends with, prints, and refuses; and that it sees every kind of
// wrong expectation.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/api/error.h"
#include "cli/subcommand.h"
#include "properties/scenario/explore.h"
#include "properties/scenario/parse.h"
#include "tests/support/run_command.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

CommandResult run(std::vector<std::string> arguments) {
  return run_command(scenario_command, std::move(arguments));
}

// A barrier that rank 0 alone calls.
std::string lone_barrier(const std::string& expect) {
  return R"({"fact": "a lone barrier", "world_size": 2, "programs": {)"
         R"("0": [{"do": "barrier"}, {"do": "all_reduce"}], "1": [{"do": "all_reduce"}]}, )"
         R"("expect": )" +
         expect + "}";
}

std::string wrong(const std::string& text) {
  return run_scenario(scenario::parse_scenario(text, "x.json"), {}).wrong;
}

std::string outcome(const std::string& members) {
  const std::string text = R"({"fact": "x", "expect": {"outcome": "passes"}, )" + members + "}";
  return describe(run_scenario(scenario::parse_scenario(text, "x.json"), {}).told.verdict);
}

class ScenarioCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(ScenarioCommand, EndsWithOneWhenOneExpectationIsWrong) {
  const std::string good = file("good.json", lone_barrier(R"({"outcome": "mismatch"})"));
  const std::string bad = file("bad.json", lone_barrier(R"({"outcome": "passes"})"));
  EXPECT_EQ(run({good}).status, kExitHolds);
  const CommandResult both = run({"--seed", "7", bad, good});
  EXPECT_EQ(both.status, kExitFailed);
  EXPECT_NE(both.out.find("FAILED " + bad + ": a lone barrier\n"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("  expected passes, saw mismatch\n  last calls of rank 0: "),
            std::string::npos)
      << both.out;
  EXPECT_NE(both.out.find("\n  replay: ddproof scenario --explain --schedule r1."),
            std::string::npos)
      << both.out;
  EXPECT_NE(both.out.find("holds  " + good), std::string::npos) << both.out;
}

TEST_F(ScenarioCommand, RefusesFlagsBehindTheFiles) {
  const std::string path = file("x.json", lone_barrier(R"({"outcome": "mismatch"})"));
  try {
    run({path, "--explain"});
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), "--explain comes after " + path +
                                ": flags come before the files (a file of that name is "
                                "./--explain)");
  }
}

TEST_F(ScenarioCommand, NamesTheFaultThatIsNone) {
  const std::string path = file("x.json", lone_barrier(R"({"outcome": "mismatch"})"));
  const auto refusal = [&](const char* faults) -> std::string {
    try {
      run({"--faults", faults, path});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "not refused";
  };
  EXPECT_TRUE(
      refusal("a;").starts_with("--faults: fault \"a\": \"a\" is no fault, expected one of "))
      << refusal("a;");
  EXPECT_TRUE(
      refusal("hang rank=0 operation=1;")
          .starts_with(
              "--faults: fault 2 of \"hang rank=0 operation=1;\" is empty: expected one of "))
      << refusal("hang rank=0 operation=1;");
}

TEST_F(ScenarioCommand, JsonCountsTheTrafficOfEachRank) {
  const std::string path = file("x.json", R"({"fact": "x", "world_size": 3, "checked": false,
      "programs": {"0": [{"do": "send", "to": 2, "count": 4}],
                   "1": [], "2": [{"do": "recv", "from": 0, "count": 4}]},
      "expect": {"outcome": "passes"}})");
  const auto traffic = nlohmann::json::parse(run({"--json", path}).out)["traffic"];
  ASSERT_EQ(traffic.size(), 3u);
  EXPECT_EQ(traffic[0].dump(),
            R"({"bytes_received":0,"bytes_sent":16,"messages_received":0,"messages_sent":1})");
  EXPECT_EQ(traffic[1].dump(),
            R"({"bytes_received":0,"bytes_sent":0,"messages_received":0,"messages_sent":0})");
  EXPECT_EQ(traffic[2].dump(),
            R"({"bytes_received":16,"bytes_sent":0,"messages_received":1,"messages_sent":0})");
}

TEST_F(ScenarioCommand, ExplainTellsWhatEachRankDidInVirtualTime) {
  const std::string path = file("x.json", R"({"fact": "x", "world_size": 2, "nodes": [1, 0],
      "programs": {"0": [{"do": "compute", "for": "3 ms"}, {"do": "exit"}],
                   "1": [{"do": "repeat", "times": 1, "steps": [{"do": "barrier"}]}]},
      "expect": {"outcome": "deadlock", "culprits": [0]}})");
  EXPECT_EQ(run({"--explain", path}).out,
            "holds  " + path +
                ": x\n"
                "  deadlock by rank 0: 1 run, 0 messages, 3 ms of virtual time\n"
                "  deadlock at t=3 ms: rank 1 waits in barrier #1 at x.json:3 for rank 0; rank 0 "
                "has returned\n"
                "  rank 0 on node 1\n"
                "          0 ns  compute 3 ms: done at 3 ms\n"
                "          3 ms  exit\n"
                "  rank 1 on node 0\n"
                "          0 ns  repeat 1 times: failed at 3 ms\n"
                "          0 ns    barrier: deadlock at 3 ms\n");
}

TEST_F(ScenarioCommand, WritesTheLastCallsOfEachRank) {
  const std::string path = file("x.json", lone_barrier(R"({"outcome": "mismatch"})"));
  const std::string dumps = folder_.path() + "/dumps";
  EXPECT_EQ(run({"--flight-recorder", dumps, path}).status, kExitHolds);
  for (int rank = 0; rank < 2; ++rank) {
    const auto json =
        nlohmann::json::parse(std::ifstream(dumps + "/rank_" + std::to_string(rank) + ".json"));
    EXPECT_EQ(json.at("entries").at(0).at("collective_seq_id"), 1);
    EXPECT_EQ(json.at("entries").at(0).at("state"), "started");
  }
}

TEST_F(ScenarioCommand, AFailureShowsTheLastCallsOfEachRank) {
  const std::string path = file("x.json", lone_barrier(R"({"outcome": "passes"})"));
  const std::string out = run({path}).out;
  EXPECT_NE(out.find("  last calls of rank 0: "), std::string::npos) << out;
  EXPECT_NE(out.find(": started, failed\n  last calls of rank 1: "), std::string::npos) << out;
}

TEST_F(ScenarioCommand, JsonHasWhatTheTextSays) {
  const std::string path = file("x.json", lone_barrier(R"({"outcome": "passes"})"));
  const CommandResult printed = run({"--json", "--explain", path});
  const auto json = nlohmann::json::parse(printed.out);
  EXPECT_EQ(json.at("holds"), false);
  EXPECT_EQ(json.at("outcome"), "mismatch");
  EXPECT_EQ(json.at("culprits"), nlohmann::json::array());
  EXPECT_EQ(json.at("failure"), "expected passes, saw mismatch");
  EXPECT_EQ(json.at("faults_fired"), nlohmann::json::array());
  EXPECT_EQ(json.at("schedules").at(0).at("runs"), 1);
  EXPECT_EQ(json.at("ranks").at(1).at(0).at("outcome"), "mismatch");
}

TEST_F(ScenarioCommand, RefusesNoFileAndFilesThatCannotBeRead) {
  EXPECT_THROW(run({}), ConfigError);
  EXPECT_THROW(run({folder_.path() + "/missing.json"}), ConfigError);
  EXPECT_THROW(run({folder_.path()}), ConfigError);
  EXPECT_THROW(run({file("empty.json", "")}), ConfigError);
}

scenario::Verdict verdict(const std::string& text) {
  return run_scenario(scenario::parse_scenario(text, "x.json"), {}).told.verdict;
}

TEST(ScenarioRun, NamesTheLineOfEachStep) {
  const auto text = [](const std::string& last) {
    return R"({"fact": "x", "world_size": 3, "programs": {
  "0": [{"do": "barrier", "label": "A"}],
  "1": [
    {"do": "compute", "for": "1 s"},
    {"do": "if", "ranks": "1", "then": [{"do": "compute", "for": "1 s"},
      {"do": "barrier", "label": "A"}]}],
  "2": [)" +
           last +
           R"(]
}, "expect": {"outcome": "passes"}})";
  };
  EXPECT_EQ(describe(verdict(text(R"({"do": "barrier", "label": "A"})"))), "passes");
  const scenario::Verdict mismatch = verdict(text(R"({"do": "barrier", "label": "B"})"));
  EXPECT_EQ(mismatch.culprits, std::vector<int>{2});
  EXPECT_NE(mismatch.text.find("rank 0: barrier #1 (A) at x.json:2; rank 1: barrier #1 (A) at "
                               "x.json:6; rank 2: barrier #1 (B) at x.json:7; rank 2 differs"),
            std::string::npos)
      << mismatch.text;
  // What is given is compared.
  EXPECT_EQ(describe(verdict(text(R"({"do": "barrier", "label": "A", "at": "x.json:2"})"))),
            "mismatch by rank 2");
}

// Three ranks in a group, and what the last two of the four programs do.
std::string in_group(const std::string& members, const std::string& rank_1) {
  return R"({"fact": "x", "world_size": 4, "groups": {"tp": [3, 1, 2]}, "timeout": "1 s", )" +
         members + R"( "programs": {"0": [{"do": "sleep", "for": "5 s"}],
           "2-3": [{"do": "all_reduce", "group": "tp"}], "1": [)" +
         rank_1 + R"(]}, "expect": {"outcome": "passes"}})";
}

TEST(ScenarioRun, TellsOfRanksOfTheWorldWhatHappensInAGroup) {
  const scenario::Verdict mismatch =
      verdict(in_group("", R"({"do": "all_reduce", "count": 2, "group": "tp"})"));
  EXPECT_EQ(describe(mismatch), "mismatch by rank 1");
  EXPECT_TRUE(mismatch.text.starts_with("group tp, whose ranks 0, 1, ... are ranks 3, 1, 2: rank "))
      << mismatch.text;
  const std::string late =
      R"({"do": "compute", "for": "3 s"}, {"do": "all_reduce", "group": "tp"})";
  EXPECT_EQ(describe(verdict(in_group("", late))), "timeout by rank 1");
  EXPECT_EQ(describe(verdict(in_group(R"("checked": false,)", late))), "timeout by rank 1");
  const scenario::Verdict gone = verdict(in_group("", R"({"do": "crash"})"));
  EXPECT_EQ(describe(gone), "lost rank by rank 1") << gone.text;
  // It closes its groups.
  EXPECT_EQ(describe(verdict(in_group("", R"({"do": "exit"})"))), "lost rank by rank 1");
}

TEST(ScenarioRun, ComparesTheResultsOfEachGroup) {
  EXPECT_EQ(outcome(R"("world_size": 4, "groups": {"a": [0, 1], "b": [2, 3]}, "checked": false,
      "programs": {"0-1": [{"do": "all_reduce", "group": "a", "count": 1000}],
                   "*": [{"do": "all_reduce", "group": "b", "count": 1000}]})"),
            "passes");
}

TEST(ScenarioRun, FindsTheRankThatIsElsewhereWhereTheOthersMeetOnSeveralLines) {
  const scenario::Verdict deadlock =
      verdict(R"({"fact": "x", "world_size": 3, "checked": false, "programs": {
  "0": [{"do": "barrier"}],
  "1": [{"do": "barrier"}],
  "2": [{"do": "recv", "from": 0}]
}, "expect": {"outcome": "passes"}})");
  EXPECT_EQ(describe(deadlock), "deadlock by rank 2") << deadlock.text;
  EXPECT_NE(deadlock.text.find("barrier #1 at x.json:2"), std::string::npos) << deadlock.text;
  EXPECT_NE(deadlock.text.find("barrier #1 at x.json:3"), std::string::npos) << deadlock.text;
}

TEST(ScenarioRun, TellsOfATimeoutInTheWordsOfARankThatWaited) {
  const scenario::Verdict timeout =
      verdict(R"({"fact": "x", "world_size": 3, "timeout": "1 s", "programs": {
        "0": [{"do": "compute", "for": "2 s"}, {"do": "barrier"}],
        "*": [{"do": "barrier"}]}, "expect": {"outcome": "timeout"}})");
  EXPECT_EQ(describe(timeout), "timeout by rank 0");
  EXPECT_TRUE(timeout.text.starts_with("rank 1/3 [sim] barrier #1 at x.json:3: ")) << timeout.text;
  EXPECT_NE(timeout.text.find("rank 0 did not come"), std::string::npos) << timeout.text;
}

TEST(ScenarioRun, RunsTheSameHoweverItsFileIsLaidOut) {
  const std::string last = R"("2": [{"do": "barrier", "label": "B"}]}})";
  const std::string text = R"({"fact": "x", "world_size": 3, "expect": {"outcome": "mismatch"},
      "programs": {"0-1": [{"do": "barrier", "label": "A"}],)";
  const auto result = [](const std::string& whole) {
    return run_scenario(scenario::parse_scenario(whole, "x.json"), {});
  };
  const auto compact = result(text + last);
  const auto sparse = result(text + std::string(1000, '\n') + last);
  EXPECT_EQ(compact.told.report.digest, sparse.told.report.digest);
  EXPECT_NE(sparse.told.verdict.text.find("barrier #1 (B) at x.json:1002"), std::string::npos)
      << sparse.told.verdict.text;
}

TEST(ScenarioRun, SeesEveryKindOfWrongExpectation) {
  EXPECT_EQ(wrong(lone_barrier(R"({"outcome": "mismatch"})")), "");
  EXPECT_EQ(wrong(lone_barrier(R"({"outcome": "timeout"})")), "expected timeout, saw mismatch");
  EXPECT_EQ(wrong(lone_barrier(R"({"outcome": "mismatch", "culprits": [0]})")),
            "expected the culprits to be rank 0, saw no rank");
  EXPECT_EQ(wrong(lone_barrier(R"({"outcome": "mismatch", "operation": "barrier #2"})")),
            "expected the verdict to name \"barrier #2\"");
  EXPECT_EQ(wrong(lone_barrier(R"({"outcome": "mismatch", "guarded_works": 1})")),
            "expected a guard's work to run 1 times, saw 0");
}

TEST(ScenarioRun, AFaultThatNeverStrikesIsWrong) {
  const auto text = [](int operation) {
    return R"({"fact": "x", "world_size": 2, "expect": {"outcome": "passes"}, "programs": {"*": []},
               "faults": ["crash rank=1 operation=)" +
           std::to_string(operation) + R"("]})";
  };
  EXPECT_EQ(wrong(text(999)), "the fault \"crash rank=1 operation=999\" took no effect");
}

TEST(ScenarioRun, NamesEveryOutcome) {
  EXPECT_EQ(outcome(R"("world_size": 1, "programs": {"0": []})"), "passes");
  EXPECT_EQ(outcome(R"("world_size": 2, "programs": {"0": [{"do": "barrier"}], "1": []})"),
            "deadlock by rank 1");
  EXPECT_EQ(outcome(R"("world_size": 2, "programs": {"0": [{"do": "all_reduce"}],
                       "1": [{"do": "crash"}]})"),
            "lost rank by rank 1");
  EXPECT_EQ(outcome(R"("world_size": 2, "programs": {"0": [], "1": [{"do": "hang"}]})"),
            "lost rank by rank 1");
  EXPECT_EQ(outcome(R"("world_size": 2, "programs": {"0": [{"do": "barrier"}],
                       "1": [{"do": "throw", "text": "x"}]})"),
            "error by rank 1");
  EXPECT_EQ(outcome(R"("world_size": 2, "programs": {"*": [{"do": "all_reduce", "expect": 4}]})"),
            "wrong result by ranks 0, 1");
  EXPECT_EQ(outcome(R"("world_size": 2, "event_limit": 1000, "programs": {"*": [
                       {"do": "repeat", "times": 1000, "steps": [{"do": "barrier"}]}]})"),
            "livelock");
}

// Rank 0 goes back to an older state of its own, which the others lack.
TEST(ScenarioRun, RanksThatTrainedApartAreADivergence) {
  EXPECT_EQ(outcome(R"("world_size": 3, "programs": {"*": [
      {"do": "train", "batches": [2]},
      {"do": "if", "ranks": "2", "then": [
        {"do": "save_checkpoint", "path": "/old", "shared": false}]},
      {"do": "train", "batches": [2]},
      {"do": "if", "ranks": "2", "then": [
        {"do": "load_checkpoint", "path": "/old", "shared": false, "expect_step": 1}]},
      {"do": "train", "batches": [2]}]})"),
            "divergence by rank 2");
}

TEST(ScenarioRun, SameSeedGivesTheSameDigestAndOthersDiffer) {
  const auto digest = [](std::uint64_t seed) {
    const std::string text = R"({"fact": "x", "world_size": 5, "expect": {"outcome": "passes"},
        "programs": {"*": [{"do": "all_reduce", "count": 9}, {"do": "train", "batches": [1]}]}})";
    return run_scenario(scenario::parse_scenario(text, "x.json"), {.seed = seed})
        .told.report.digest;
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

TEST(ScenarioRun, StopsAtTheFirstRunThatIsNotAsExpected) {
  const std::string text = R"({"fact": "x", "world_size": 2, "expect": {"outcome": "deadlock"},
      "schedules": [{"scheduler": "round robin"}, {"scheduler": "random", "runs": 9}],
      "programs": {"*": [{"do": "barrier"}]}})";
  const auto result = run_scenario(scenario::parse_scenario(text, "x.json"), {.seed = 3});
  EXPECT_EQ(result.wrong, "expected deadlock, saw passes");
  EXPECT_EQ(result.runs, 1u);
  EXPECT_EQ(result.strategy, sim::Strategy::kFirstCome);
  EXPECT_EQ(result.seed, 3u);
}

}  // namespace
}  // namespace ddproof
