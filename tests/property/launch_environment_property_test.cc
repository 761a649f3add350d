// 1,000,000 drawn environments: each gives the right world, or is refused with a text that names a
// variable. Most begin as a starter's own, with up to three of the variables broken.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/launch/environment.h"
#include "simulator/random.h"
#include "tests/support/map_environment.h"

namespace ddproof {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr int kEnvironments = 1'000'000;

using Variables = MapEnvironment::Variables;

// Who may have set the variables, and what the ranks are called there.
struct Names {
  const char* starter;
  const char* rank;
  const char* world_size;
  const char* local_rank;        // empty: none, it is 0
  const char* local_world_size;  // empty: none
  Variables others;
};

const std::vector<Names>& starters() {
  static const std::vector<Names> all{
      {"environment variables", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}},
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       {{"TORCHELASTIC_RUN_ID", "none"}}},
      {"ddproof run",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       {{"DDPROOF_RUN_ID", "7"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}},
      {"Kubeflow", "RANK", "WORLD_SIZE", "", "", {{"KUBERNETES_PORT", "tcp://10.0.0.1:443"}}},
      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", {{"SLURM_STEP_ID", "0"}}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {}},
      {"MVAPICH",
       "MV2_COMM_WORLD_RANK",
       "MV2_COMM_WORLD_SIZE",
       "MV2_COMM_WORLD_LOCAL_RANK",
       "MV2_COMM_WORLD_LOCAL_SIZE",
       {}},
      {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}}};
  return all;
}

const std::vector<std::string> kHosts{"127.0.0.1", "localhost",      "::1",
                                      "[::1]",     "node-0.cluster", "10.1.2.3"};
const std::vector<std::string> kNoHosts{
    "",     "localhost:29500", "[127.0.0.1]", "1.2.3", "-a", "a b", "999.1.1.1", "[::1",
    "::1]", "http://a",        "a\nb",        "[]"};
// As numbers most of these are none.
const std::vector<std::string> kValues{"0",
                                       "1",
                                       "2",
                                       "3",
                                       "7",
                                       "8",
                                       "-1",
                                       "-2",
                                       "",
                                       " ",
                                       " 1",
                                       "1 ",
                                       "01",
                                       "+1",
                                       "1.0",
                                       "1e0",
                                       "0x1",
                                       "32767",
                                       "32768",
                                       "32769",
                                       "1\n",
                                       "\t1",
                                       "65535",
                                       "65536",
                                       "2147483648",
                                       "4294967297",
                                       "9223372036854775808",
                                       "None",
                                       "nan",
                                       "true",
                                       "\xd9\xa1",
                                       "1,2",
                                       "$RANK",
                                       "--1",
                                       "000000000000000000000000000001"};

struct Drawn {
  Variables variables;
  const Names* names = nullptr;
  int rank = 0, world_size = 1, local_rank = 0;
  bool is_broken = false;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(sim::mix64(seed)) {}

  Drawn environment() {
    Drawn drawn;
    drawn.names = &starters()[below(starters().size())];
    const int nodes = 1 + static_cast<int>(below(3));
    const int local_world_size = 1 + static_cast<int>(below(4));
    const int local = *drawn.names->local_rank != 0 ? local_world_size : 1;
    drawn.world_size = nodes * local;
    drawn.rank = static_cast<int>(below(static_cast<std::size_t>(drawn.world_size)));
    drawn.local_rank = drawn.rank % local;
    Variables& variables = drawn.variables;
    variables = drawn.names->others;
    variables[drawn.names->rank] = std::to_string(drawn.rank);
    variables[drawn.names->world_size] = std::to_string(drawn.world_size);
    const auto set = [&](const char* name, int value) {
      if (*name != 0) variables[name] = std::to_string(value);
    };
    set(drawn.names->local_rank, drawn.local_rank);
    if (below(2) == 0) set(drawn.names->local_world_size, local);
    if (below(2) == 0) variables["GROUP_WORLD_SIZE"] = std::to_string(nodes);
    variables["MASTER_ADDR"] = kHosts[below(kHosts.size())];
    variables["MASTER_PORT"] = std::to_string(1 + below(65535));
    const std::size_t breaks = below(4);
    for (std::size_t i = 0; i < breaks; ++i) break_one(drawn);
    return drawn;
  }

 private:
  std::size_t below(std::size_t bound) { return sim::below(random_.next(), bound); }

  void break_one(Drawn& drawn) {
    drawn.is_broken = true;
    Variables& variables = drawn.variables;
    const auto any = [&] {
      return std::next(variables.begin(), static_cast<std::ptrdiff_t>(below(variables.size())));
    };
    switch (below(6)) {
      case 0: variables.erase(any()); return;
      case 1: variables["MASTER_ADDR"] = kNoHosts[below(kNoHosts.size())]; return;
      case 2: variables["LOCAL_RANK"] = kValues[below(kValues.size())]; return;
      case 3: {
        const Names& other = starters()[below(starters().size())];
        variables[other.rank] = kValues[below(kValues.size())];
        return;
      }
      case 4: variables["DDPROOF_STORE_TOKEN"] = std::string(below(3), 't'); return;
      default: any()->second = kValues[below(kValues.size())];
    }
  }

  sim::SplitMix64 random_;
};

// --- What the contract in environment.h says of plain variables, once more, in the test's own
// words

std::optional<int> number_of(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.empty()) return std::nullopt;
  if (found->second.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  long value = 0;
  for (const char digit : found->second) value = std::min(value * 10 + (digit - '0'), 1'000'000L);
  return static_cast<int>(value);
}

bool is_right_world(const Variables& variables) {
  const auto has = [&](const char* name) { return variables.contains(name); };
  if (!has("LOCAL_RANK") || variables.at("LOCAL_RANK") == "-1") {
    return !has("RANK") && !has("WORLD_SIZE");
  }
  const auto world = number_of(variables, "WORLD_SIZE");
  const auto rank = number_of(variables, "RANK");
  const auto local = number_of(variables, "LOCAL_RANK");
  if (!world || !rank || !local) return false;
  if (*world < 1 || *world > kWorldSizeMax || *rank >= *world || *local > *rank) return false;
  const auto local_world = number_of(variables, "LOCAL_WORLD_SIZE");
  if (has("LOCAL_WORLD_SIZE")) {
    if (!local_world || *local_world <= *local) return false;
    if (*local_world - 1 - *local > *world - 1 - *rank) return false;
  }
  if (has("GROUP_WORLD_SIZE")) {
    const auto nodes = number_of(variables, "GROUP_WORLD_SIZE");
    if (!nodes || *nodes < 1 || *nodes > *world) return false;
    if (*nodes == 1 && local_world && *local_world != *world) return false;
  }
  const auto port = number_of(variables, "MASTER_PORT");
  if (!port || *port > 65535 || (*port == 0 && *world > 1)) return false;
  const auto host = variables.find("MASTER_ADDR");
  const auto is_in = [&](const std::vector<std::string>& hosts) {
    return std::ranges::find(hosts, host->second) != hosts.end();
  };
  return host != variables.end() && (is_in(kHosts) || is_in({"1e0", "0x1", "None", "nan", "true"}));
}

// -----------------------------------------------------------------------------------------------

std::string shown(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += name + "=\"" + value + "\" ";
  return text;
}

// Empty when the world makes sense.
std::string wrong_with(const LaunchEnvironment& launch) {
  if (!launch.distributed) return launch.world_size == 1 && launch.local_rank == -1 ? "" : "alone";
  if (launch.world_size < 1 || launch.world_size > kWorldSizeMax) return "world size";
  if (launch.rank < 0 || launch.rank >= launch.world_size) return "rank";
  if (launch.local_rank < 0 || launch.local_rank > launch.rank) return "local rank";
  const int local = launch.local_world_size;
  if (local != 0 && (local <= launch.local_rank || local > launch.world_size)) return "local size";
  if (launch.master_addr.empty()) return "master address";
  return launch.master_port != 0 || launch.world_size == 1 ? "" : "master port";
}

// Empty when a person can do something with it.
std::string wrong_with(const std::string& refusal) {
  if (!refusal.starts_with("environment variable ")) return "names no variable";
  if (refusal.size() > 1'000) return "too long";
  const bool is_clean = std::ranges::all_of(
      refusal, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  return is_clean ? "" : "control characters";
}

TEST(LaunchEnvironmentProperty, EachIsARightWorldOrNamesAVariable) {
  int accepted = 0, alone = 0;
  std::map<std::string, int> refused_by;
  for (std::uint64_t i = 0; i < kEnvironments; ++i) {
    const Drawn drawn = Draw(kSeed * kEnvironments + i).environment();
    const std::string where = "environment " + std::to_string(i);
    std::optional<LaunchEnvironment> launch;
    std::string refusal;
    try {
      launch = read_launch_environment(MapEnvironment(drawn.variables));
    } catch (const ConfigError& error) {
      refusal = error.what();
    }
    const std::string wrong = launch ? wrong_with(*launch) : wrong_with(refusal);
    ASSERT_EQ(wrong, "") << where << ": " << shown(drawn.variables) << refusal;
    if (!drawn.is_broken) {
      ASSERT_TRUE(launch && launch->source == drawn.names->starter && launch->rank == drawn.rank &&
                  launch->world_size == drawn.world_size && launch->local_rank == drawn.local_rank)
          << where << ": " << shown(drawn.variables) << refusal;
    }
    const bool is_plain = std::string(drawn.names->rank) == "RANK" && *drawn.names->local_rank != 0;
    if (is_plain && (drawn.variables.contains("RANK") || drawn.variables.contains("LOCAL_RANK") ||
                     drawn.variables.contains("WORLD_SIZE"))) {
      const auto token = drawn.variables.find("DDPROOF_STORE_TOKEN");
      const bool has_bad_token = token != drawn.variables.end() && token->second.empty();
      const bool is_right =
          is_right_world(drawn.variables) && !(has_bad_token && (!launch || launch->distributed));
      ASSERT_EQ(launch.has_value(), is_right) << where << ": " << shown(drawn.variables) << refusal;
    }
    accepted += launch && launch->distributed ? 1 : 0;
    alone += launch && !launch->distributed ? 1 : 0;
    if (!launch) ++refused_by[refusal.substr(21, refusal.find(' ', 21) - 21)];
  }
  std::printf("%d environments, seed %d: %d are worlds, %d stand alone; refused, by variable:",
              kEnvironments, static_cast<int>(kSeed), accepted, alone);
  for (const auto& [name, count] : refused_by) std::printf(" %s %d", name.c_str(), count);
  std::printf("\n");
  EXPECT_GT(accepted, kEnvironments / 4);
  EXPECT_GT(alone, 0);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                           "MASTER_PORT", "GROUP_WORLD_SIZE", "DDPROOF_STORE_TOKEN", "SLURM_PROCID",
                           "OMPI_COMM_WORLD_SIZE", "PMI_RANK"}) {
    EXPECT_GT(refused_by[name], 1'000) << name;
  }
}

}  // namespace
}  // namespace ddproof
