#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/registry/registry.h"
#include "cli/subcommand.h"
#include "tests/support/run_command.h"

namespace ddproof {
namespace {

std::string print(const std::vector<std::string>& arguments) {
  const CommandResult result = run_command(backends_command, arguments);
  EXPECT_EQ(result.status, kExitHolds);
  EXPECT_EQ(result.err, "");
  return result.out;
}

TEST(BackendsCommand, JsonNamesEveryBackendWithItsOperations) {
  const auto list = nlohmann::json::parse(print({"--json"}));
  const std::vector<BackendInfo> backends = list_backends();
  ASSERT_EQ(list.size(), backends.size());
  for (std::size_t i = 0; i < backends.size(); ++i) {
    EXPECT_EQ(list[i]["name"], backends[i].name);
    EXPECT_EQ(list[i]["available"], backends[i].available);
    if (!backends[i].available) continue;
    const auto backend = make_backend(backends[i].name);
    EXPECT_EQ(list[i]["ops"].size(), backend->capabilities().ops.size());
    EXPECT_EQ(list[i]["dtypes"].size(), backend->capabilities().dtypes.size());
    EXPECT_EQ(list[i]["virtual_time"], backend->capabilities().virtual_time);
  }
}

TEST(BackendsCommand, TheTableShowsSingle) {
  const std::string table = print({});
  for (const char* part :
       {"single: one rank, no communication\n", "\n  all_reduce  ",
        "\n  element types            int8 ", "\n  virtual time             no\n"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

}  // namespace
}  // namespace ddproof
