#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/launch/environment.h"
#include "tests/support/map_environment.h"

namespace ddproof {
namespace {

using Variables = MapEnvironment::Variables;

const Variables kRankOneOfFour = {
    {"LOCAL_RANK", "1"},          {"RANK", "1"},
    {"WORLD_SIZE", "4"},          {"LOCAL_WORLD_SIZE", "4"},
    {"MASTER_PORT", "29500"},     {"MASTER_ADDR", "node-0.cluster"},
    {"TORCHELASTIC_RUN_ID", "x"},
};

// `changes` on top of rank 1 of 4; no value: the variable is not set.
struct Change {
  std::string name;
  std::optional<std::string> value;
};

LaunchEnvironment read(const std::vector<Change>& changes, Variables variables = kRankOneOfFour) {
  for (const Change& change : changes) {
    variables.erase(change.name);
    if (change.value) variables[change.name] = *change.value;
  }
  return read_launch_environment(MapEnvironment(variables));
}

std::string refusal(const std::vector<Change>& changes) {
  try {
    read(changes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LaunchEnvironment, TorchrunsVariablesGiveTheWorld) {
  const LaunchEnvironment launch = read({});
  const LaunchEnvironment expected{.distributed = true,
                                   .rank = 1,
                                   .world_size = 4,
                                   .local_rank = 1,
                                   .local_world_size = 4,
                                   .master_addr = "node-0.cluster",
                                   .master_port = 29500,
                                   .source = "torchrun"};
  EXPECT_EQ(launch, expected);
}

TEST(LaunchEnvironment, OnlyOurLauncherHostsOurStore) {
  const auto hosts = [](const std::vector<Change>& changes) {
    const LaunchEnvironment launch = read(changes);
    return std::pair(launch.launcher_hosts_store, launch.master_port != 29500);
  };
  const Change agent_store{"TORCHELASTIC_USE_AGENT_STORE", "True"};
  const Change ours{"DDPROOF_RUN_ID", "x"};
  EXPECT_EQ(hosts({agent_store, ours}), std::pair(true, false));
  EXPECT_EQ(hosts({agent_store}), std::pair(false, true));
  EXPECT_EQ(hosts({{"TORCHELASTIC_USE_AGENT_STORE", "False"}, ours}), std::pair(false, false));
  EXPECT_EQ(hosts({ours}), std::pair(false, false));
}

TEST(LaunchEnvironment, OurStoreIsBesideTorchruns) {
  const auto port = [](const std::string& pytorchs) {
    return read({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", pytorchs}}).master_port;
  };
  EXPECT_EQ(port("29500"), 29501);
  EXPECT_EQ(port("65534"), 65535);
  EXPECT_EQ(port("65535"), 65534);
}

TEST(LaunchEnvironment, TheTokenIsTakenAndNeverTold) {
  EXPECT_EQ(read({}).store_token, "");
  EXPECT_EQ(read({{"DDPROOF_STORE_TOKEN", "secret"}}).store_token, "secret");
  const std::string allowed = " bytes; allowed: 1 to 4096, or not to set it";
  EXPECT_EQ(refusal({{"DDPROOF_STORE_TOKEN", ""}}),
            "environment variable DDPROOF_STORE_TOKEN has 0" + allowed);
  EXPECT_EQ(refusal({{"DDPROOF_STORE_TOKEN", std::string(4097, 't')}}),
            "environment variable DDPROOF_STORE_TOKEN has 4097" + allowed);
}

TEST(LaunchEnvironment, SaysWhichStarterSetIt) {
  EXPECT_EQ(read({{"DDPROOF_RUN_ID", "1"}}).source, "ddproof run");
  EXPECT_EQ(read({{"TORCHELASTIC_RUN_ID", std::nullopt}}).source, "environment variables");
}

TEST(LaunchEnvironment, UnsetOrMinusOneMeansNotDistributed) {
  const LaunchEnvironment alone{.source = "nobody"};
  EXPECT_FALSE(alone.distributed);
  EXPECT_EQ(alone.world_size, 1);
  EXPECT_EQ(alone.local_rank, -1);
  EXPECT_EQ(read({}, {}), alone);
  EXPECT_EQ(read({}, {{"LOCAL_RANK", "-1"}}), alone);
  EXPECT_EQ(read({}, {{"MASTER_PORT", "no matter"}}), alone);
}

TEST(LaunchEnvironment, LocalWorldSizeMayBeUnknown) {
  EXPECT_EQ(read({{"LOCAL_WORLD_SIZE", std::nullopt}}).local_world_size, 0);
}

TEST(LaunchEnvironment, TheNumberOfNodesMayBeKnown) {
  EXPECT_EQ(read({{"GROUP_WORLD_SIZE", "1"}}).world_size, 4);
  EXPECT_EQ(read({{"GROUP_WORLD_SIZE", "2"}, {"WORLD_SIZE", "6"}}).world_size, 6);
  EXPECT_EQ(read({{"GROUP_WORLD_SIZE", "1"}, {"LOCAL_WORLD_SIZE", std::nullopt}}).world_size, 4);
}

TEST(LaunchEnvironment, LeadingZerosAreFineEverywhere) {
  const LaunchEnvironment launch = read(
      {{"LOCAL_RANK", "00"}, {"RANK", "02"}, {"WORLD_SIZE", "04"}, {"LOCAL_WORLD_SIZE", "02"}});
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.world_size, 4);
}

TEST(LaunchEnvironment, TheLastRankOfTheSecondNodeIsAccepted) {
  const LaunchEnvironment launch =
      read({{"RANK", "3"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.local_rank, 1);
}

TEST(LaunchEnvironment, EveryRangeIsCheckedAtBothEnds) {
  EXPECT_EQ(read({{"MASTER_PORT", "1"}}).master_port, 1);
  EXPECT_EQ(read({{"MASTER_PORT", "65535"}}).master_port, 65535);
  EXPECT_EQ(read({{"WORLD_SIZE", "32768"}}).world_size, kWorldSizeMax);
  EXPECT_EQ(read({{"RANK", "3"}, {"LOCAL_RANK", "3"}}).rank, 3);
  EXPECT_EQ(read({{"RANK", "0"}, {"LOCAL_RANK", "0"}}).rank, 0);
}

TEST(LaunchEnvironment, PortZeroIsForAWorldOfOne) {
  const std::vector<Change> alone = {{"RANK", "0"},
                                     {"LOCAL_RANK", "0"},
                                     {"WORLD_SIZE", "1"},
                                     {"LOCAL_WORLD_SIZE", "1"},
                                     {"MASTER_PORT", "0"}};
  EXPECT_EQ(read(alone).master_port, 0);
  EXPECT_EQ(refusal({{"MASTER_PORT", "0"}}),
            "environment variable MASTER_PORT is \"0\"; allowed: a whole number from 1 to 65535");
}

TEST(LaunchEnvironment, AddressesOfEveryKindAreAccepted) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"localhost", "localhost"}, {"127.0.0.1", "127.0.0.1"},       {"::1", "::1"},
      {"[::1]", "::1"},           {"fe80::1%eth0", "fe80::1%eth0"}, {"a_b.c-d.e", "a_b.c-d.e"},
      {"node0i", "node0i"},       {"[2001:db8::2]", "2001:db8::2"},
  };
  for (const auto& [given, host] : table) {
    EXPECT_EQ(read({{"MASTER_ADDR", given}}).master_addr, host);
  }
}

TEST(LaunchEnvironment, WhatIsNoAddressIsRefused) {
  for (const char* given : {"", "localhost:29500", "[::1]:29500", "[localhost]", "http://a", "a b",
                            "256.1.1.1", "1.2.3", "::g", "[::1", "::1]", "-a", "a/b", ":"}) {
    EXPECT_EQ(refusal({{"MASTER_ADDR", given}}),
              "environment variable MASTER_ADDR is \"" + std::string(given) +
                  "\"; allowed: a host name, an IPv4 address or an IPv6 address, without a port");
  }
}

TEST(LaunchEnvironment, EachBadVariableIsNamedWithWhatIsAllowed) {
  struct Row {
    std::vector<Change> changes;
    std::string text;
  };
  const std::string unset_both = "; or unset RANK and WORLD_SIZE to run one process";
  const std::vector<Row> table = {
      {{{"WORLD_SIZE", "0"}}, "WORLD_SIZE is \"0\"; allowed: a whole number from 1 to 32768"},
      {{{"WORLD_SIZE", "-2"}}, "WORLD_SIZE is \"-2\"; allowed: a whole number from 1 to 32768"},
      {{{"WORLD_SIZE", "32769"}},
       "WORLD_SIZE is \"32769\"; allowed: a whole number from 1 to 32768"},
      {{{"WORLD_SIZE", std::nullopt}},
       "WORLD_SIZE is not set; allowed: a whole number from 1 to 32768; ddproof run and torchrun "
       "set it"},
      {{{"WORLD_SIZE", "99999999999999999999"}},
       "WORLD_SIZE is \"99999999999999999999\"; allowed: a whole number from 1 to 32768"},
      {{{"RANK", "-1"}}, "RANK is \"-1\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "4"}}, "RANK is \"4\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "1.0"}}, "RANK is \"1.0\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "abc"}}, "RANK is \"abc\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", " 1"}}, "RANK is \" 1\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "1\n"}}, "RANK is \"1?\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "+1"}}, "RANK is \"+1\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "0x1"}}, "RANK is \"0x1\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", "٣"}}, "RANK is \"٣\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", ""}}, "RANK is \"\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
      {{{"RANK", std::nullopt}},
       "RANK is not set; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4); ddproof run and "
       "torchrun set it"},
      {{{"LOCAL_RANK", "2"}},
       "LOCAL_RANK is \"2\"; allowed: a whole number from 0 to 1 (RANK is 1)"},
      {{{"LOCAL_RANK", std::nullopt}},
       "LOCAL_RANK is not set; allowed: a whole number from 0, since RANK is \"1\"" + unset_both +
           "; ddproof run and torchrun set it"},
      {{{"LOCAL_RANK", "-1"}, {"RANK", std::nullopt}},
       "LOCAL_RANK is \"-1\"; allowed: a whole number from 0, since WORLD_SIZE is \"4\"" +
           unset_both},
      {{{"LOCAL_WORLD_SIZE", "1"}},
       "LOCAL_WORLD_SIZE is \"1\"; allowed: a whole number from 2 to 4 (LOCAL_RANK is 1, RANK is "
       "1, "
       "WORLD_SIZE is 4)"},
      {{{"LOCAL_WORLD_SIZE", "5"}},
       "LOCAL_WORLD_SIZE is \"5\"; allowed: a whole number from 2 to 4 (LOCAL_RANK is 1, RANK is "
       "1, "
       "WORLD_SIZE is 4)"},
      {{{"RANK", "3"}, {"LOCAL_RANK", "0"}},
       "LOCAL_WORLD_SIZE is \"4\"; allowed: 1 (LOCAL_RANK is 0, RANK is 3, WORLD_SIZE is 4)"},
      {{{"MASTER_PORT", "70000"}},
       "MASTER_PORT is \"70000\"; allowed: a whole number from 1 to 65535"},
      {{{"MASTER_PORT", "-5"}}, "MASTER_PORT is \"-5\"; allowed: a whole number from 1 to 65535"},
      {{{"MASTER_PORT", "abc"}}, "MASTER_PORT is \"abc\"; allowed: a whole number from 1 to 65535"},
      {{{"MASTER_PORT", ""}}, "MASTER_PORT is \"\"; allowed: a whole number from 1 to 65535"},
      {{{"MASTER_PORT", std::nullopt}},
       "MASTER_PORT is not set; allowed: a whole number from 1 to 65535; ddproof run and torchrun "
       "set it"},
      {{{"MASTER_ADDR", std::nullopt}},
       "MASTER_ADDR is not set; allowed: a host name, an IPv4 address or an IPv6 address, without "
       "a "
       "port; ddproof run and torchrun set it"},
      {{{"RANK", std::string(100, '7')}},
       "RANK is \"" + std::string(80, '7') +
           "...\"; allowed: a whole number from 0 to 3 (WORLD_SIZE is 4)"},
  };
  for (const Row& row : table) {
    EXPECT_EQ(refusal(row.changes), "environment variable " + row.text);
  }
}

TEST(LaunchEnvironment, AValueThatIsNoRankIsRefusedWhateverElseIsSet) {
  for (const char* value : {"-2", "-0", "32768", "", "abc", "1.0"}) {
    const std::string text =
        "environment variable LOCAL_RANK is \"" + std::string(value) +
        "\"; allowed: a whole number from 0 to 32767, or -1 to run one process";
    EXPECT_EQ(refusal({{"LOCAL_RANK", value}}), text);
    EXPECT_EQ(
        refusal({{"LOCAL_RANK", value}, {"RANK", std::nullopt}, {"WORLD_SIZE", std::nullopt}}),
        text);
  }
}

// Others would wait for ranks that nobody starts.
TEST(LaunchEnvironment, TheOnlyNodeHasTheWholeWorld) {
  for (const char* size : {"5", "6"}) {
    EXPECT_EQ(refusal({{"WORLD_SIZE", size}, {"GROUP_WORLD_SIZE", "1"}}),
              "environment variable WORLD_SIZE is \"" + std::string(size) +
                  "\"; allowed: 4 (LOCAL_WORLD_SIZE is 4, GROUP_WORLD_SIZE is 1)");
  }
  EXPECT_EQ(refusal({{"GROUP_WORLD_SIZE", "0"}}),
            "environment variable GROUP_WORLD_SIZE is \"0\"; allowed: a whole number from 1 to 4 "
            "(WORLD_SIZE is 4)");
}

// Any environment is either accepted with a right world or refused naming a variable.
rc::Gen<std::optional<std::string>> any_value() {
  const auto number =
      rc::gen::map(rc::gen::inRange(-3, 12), [](int n) { return std::to_string(n); });
  const auto odd = rc::gen::elementOf(std::vector<std::string>{
      "", " ", "1.0", "abc", "70000", "-5", "65535", "99999999999999999999", "localhost", "[::1]",
      "256.0.0.1", "٣", "0x1", "1e3", "+1", "True"});
  const auto set = rc::gen::weightedOneOf<std::string>(
      {{8, number}, {2, odd}, {1, rc::gen::string<std::string>()}});
  return rc::gen::weightedOneOf<std::optional<std::string>>(
      {{6, rc::gen::map(set, [](std::string s) { return std::optional(std::move(s)); })},
       {1, rc::gen::just(std::optional<std::string>())}});
}

RC_GTEST_PROP(LaunchEnvironmentProperty, IsAcceptedWithARightWorldOrRefusedNamingAVariable, ()) {
  const std::vector<std::string> names = {"LOCAL_RANK",  "RANK",        "WORLD_SIZE",
                                          "MASTER_PORT", "MASTER_ADDR", "LOCAL_WORLD_SIZE"};
  // Mostly a right environment with few changes, so that every outcome is frequent.
  Variables variables;
  const bool mostly_right = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  if (mostly_right) variables = kRankOneOfFour;
  const auto changed = *rc::gen::container<std::vector<bool>>(
      names.size(), rc::gen::weightedElement<bool>({{mostly_right ? 6 : 1, false}, {1, true}}));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!changed[i]) continue;
    const auto value = *any_value();
    variables.erase(names[i]);
    if (value) variables[names[i]] = *value;
  }
  try {
    const LaunchEnvironment launch = read_launch_environment(MapEnvironment(variables));
    RC_CLASSIFY(launch.distributed, "distributed");
    RC_CLASSIFY(!launch.distributed, "not distributed");
    RC_ASSERT(0 <= launch.rank);
    RC_ASSERT(launch.rank < launch.world_size);
    RC_ASSERT(launch.distributed == (launch.local_rank >= 0));
    if (launch.distributed) {
      RC_ASSERT(launch.local_rank <= launch.rank);
      RC_ASSERT(!launch.master_addr.empty());
      RC_ASSERT(launch.world_size == 1 || launch.master_port > 0);
      RC_ASSERT(std::stoi(variables.at("RANK")) == launch.rank);
      RC_ASSERT(std::stoi(variables.at("WORLD_SIZE")) == launch.world_size);
    } else {
      RC_ASSERT(launch.world_size == 1);
      RC_ASSERT(!variables.contains("RANK"));
    }
  } catch (const ConfigError& error) {
    RC_TAG("refused");
    const std::string text = error.what();
    RC_ASSERT(text.starts_with("environment variable "));
    RC_ASSERT(text.find("; allowed: ") != std::string::npos);
    bool named = false;
    for (const std::string& name : names) {
      named = named || text.starts_with("environment variable " + name + " is ");
    }
    RC_ASSERT(named);
  }
}

}  // namespace
}  // namespace ddproof
