// What runs leave behind: events and last calls in files, of the run that was kept.
#include "cli/watched_backend.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class WatchedSim : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  // Two ranks make a call of this label, and one more; or rank 1 fails before that.
  void run(WatchedBackend& backend, const std::string& label, bool fails) {
    backend.run_world({.world_size = 2}, [&](RankContext& rank) {
      rank.group.barrier({.label = label})->wait();
      if (fails && rank.group.rank() == 1) throw std::runtime_error("planted");
      if (!fails) rank.group.barrier()->wait();
    });
  }

  std::size_t calls_of_rank_1() const {
    return nlohmann::json::parse(text_of(path("calls/rank_1.json"))).at("entries").size();
  }

  TemporaryFolder folder_;
  OsRuntime runtime_;
  const RunFileFlags flags_{
      .trace = path("t.json"), .log = path("t.log"), .flight_recorder = path("calls")};
};

TEST_F(WatchedSim, LeavesTheFilesOfTheRunThatWasKept) {
  WatchedBackend backend(make_backend("sim"), flags_, runtime_.files());
  EXPECT_THROW(run(backend, "fails", true), std::runtime_error);
  backend.keep();
  run(backend, "later", false);
  for (const std::string name : {"t.json", "t.log"}) {
    EXPECT_NE(text_of(path(name)).find("fails"), std::string::npos) << name;
    EXPECT_EQ(text_of(path(name)).find("later"), std::string::npos) << name;
  }
  EXPECT_FALSE(nlohmann::json::parse(text_of(path("t.json"))).empty());
  EXPECT_EQ(calls_of_rank_1(), 1u);
  backend.keep();
  EXPECT_EQ(calls_of_rank_1(), 2u);
  EXPECT_NE(text_of(path("t.log")).find("later"), std::string::npos);
}

TEST_F(WatchedSim, LeavesNothingOfARunThatNobodyKept) {
  WatchedBackend backend(make_backend("sim"), flags_, runtime_.files());
  run(backend, "first", false);
  backend.forget();
  EXPECT_FALSE(backend.has_run());
  backend.keep();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(WatchedSim, WritesTheEventsAsTheyHappenOnceTheFilesAreOpen) {
  WatchedBackend backend(make_backend("sim"), flags_, runtime_.files());
  backend.open_files();
  EXPECT_THROW(run(backend, "fails", true), std::runtime_error);
  EXPECT_NE(text_of(path("t.log")).find("fails"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(text_of(path("t.json"))).empty());
}

TEST_F(WatchedSim, SaysBeforeARunWhatCannotBeWritten) {
  for (const RunFileFlags& flags : {RunFileFlags{.trace = path("no folder/t.json")},
                                    RunFileFlags{.log = path("no folder/t.log")}}) {
    WatchedBackend backend(make_backend("sim"), flags, runtime_.files());
    EXPECT_THROW(backend.open_files(), DataError);
  }
}

TEST_F(WatchedSim, RefusesOnePathForTwoFiles) {
  try {
    WatchedBackend(make_backend("sim"), {.trace = "x", .log = "x"}, runtime_.files());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--trace and --log are both \"x\"; give each a path of its own");
  }
}

TEST_F(WatchedSim, SaysWhatItsRanksCalledLast) {
  WatchedBackend backend(make_backend("sim"), {}, runtime_.files());
  std::ostringstream before, after;
  backend.print_last_calls(before);
  run(backend, "ready", false);
  backend.print_last_calls(after);
  EXPECT_EQ(before.str(), "");
  EXPECT_NE(after.str().find("  last calls of rank 1: barrier #1 (ready) at "), std::string::npos)
      << after.str();
  backend.forget();
  std::ostringstream forgotten;
  backend.print_last_calls(forgotten);
  EXPECT_EQ(forgotten.str(), "");
}

TEST_F(WatchedSim, RunsAsTheBackendItselfDoes) {
  WatchedBackend watched(make_backend("sim"), flags_, runtime_.files());
  const auto digest_by = [](Backend& backend) {
    return backend
        .run_world({.world_size = 3, .seed = 5},
                   [](RankContext& rank) { rank.group.barrier()->wait(); })
        .digest;
  };
  EXPECT_EQ(digest_by(watched), digest_by(*make_backend("sim")));
}

TEST_F(WatchedSim, RefusesEventsOfABackendThatSimulatesNone) {
  for (const auto& [flags, flag] : {std::pair{RunFileFlags{.trace = "t"}, "--trace"},
                                    std::pair{RunFileFlags{.log = "t"}, "--log"}}) {
    try {
      WatchedBackend(make_backend("gloo"), flags, runtime_.files());
      ADD_FAILURE() << flag << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), flag + std::string(": backend gloo simulates no events; use "
                                                 "--backend sim, or --flight-recorder for the "
                                                 "calls"));
    }
  }
}

TEST_F(WatchedSim, TellsOfAFailureWhateverBecomesOfTheFiles) {
  std::ofstream(path("file")) << "x";
  WatchedBackend backend(make_backend("sim"), {.flight_recorder = path("file/calls")},
                         runtime_.files());
  EXPECT_THROW(run(backend, "fails", true), std::runtime_error);
  std::ostringstream told;
  backend.tell_of_failure(told);
  EXPECT_NE(told.str().find("  last calls of rank 1: barrier #1 (fails) at "), std::string::npos);
  EXPECT_NE(told.str().find("\n  " + path("file/calls") + ": "), std::string::npos) << told.str();
}

}  // namespace
}  // namespace ddproof
