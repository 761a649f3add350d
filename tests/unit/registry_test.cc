#include "backends/registry/registry.h"

#include <gtest/gtest.h>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::string refusal_of(std::string_view name) {
  try {
    make_backend(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "made";
}

TEST(Registry, ListsEveryBackendOnceWithAReasonWhereItIsMissing) {
  for (const BackendInfo& info : list_backends()) {
    EXPECT_EQ(info.available, info.why_not.empty()) << info.name;
    EXPECT_FALSE(info.what.empty()) << info.name;
    EXPECT_EQ(refusal_of(info.name), info.available ? "made"
                                                    : "backend " + std::string(info.name) + ": " +
                                                          std::string(info.why_not));
    if (info.available) {
      EXPECT_EQ(make_backend(info.name)->name(), info.name);
    }
  }
}

TEST(Registry, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const std::string text = refusal_of("mpi");
  EXPECT_TRUE(text.starts_with("backend is \"mpi\", allowed are single, ")) << text;
  EXPECT_NE(text.find("gloo"), std::string::npos);
}

TEST(SingleBackend, MoreRanksThanOneAreRefusedWithWhatToDo) {
  try {
    make_backend("single")->run_world({.world_size = 2}, [](RankContext&) {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "backend single: world size is 2, allowed is 1; use --backend sim or gloo for more "
        "ranks");
  }
}

}  // namespace
}  // namespace ddproof
