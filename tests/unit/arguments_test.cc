#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "tests/support/map_environment.h"

namespace ddproof {
namespace {

using Words = std::vector<std::string>;

struct Flags {
  Flags() {
    arguments.flag("--standalone", standalone, "one node");
    arguments.number("--nproc-per-node", nproc, 1, 64, "processes");
    arguments.number("--seed", seed, -10, 10, "seed");
    arguments.number("--lr", lr, 0.0, 1.0, "rate");
    arguments.text("-o,--master-addr", address, "address");
    arguments.texts("--path", paths, "paths");
    arguments.choice("--model", model, {"mlp", "cnn"}, "model");
  }
  std::string refusal(const Words& words) {
    try {
      arguments.parse(words, out);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::ostringstream out;
  Arguments arguments{"ddproof try", "Tries flags."};
  bool standalone = false;
  int nproc = 1;
  std::int64_t seed = 0;
  double lr = 0.1;
  std::string address = "127.0.0.1";
  Words paths;
  std::string model = "mlp";
};

TEST(Arguments, SetTheirTargets) {
  Flags flags;
  EXPECT_TRUE(
      flags.arguments.parse({"--standalone", "--nproc-per-node", "3", "--seed", "-7", "--lr=0.5",
                             "--master-addr", "::1", "--path", "a", "--path=b", "--model", "cnn"},
                            flags.out));
  EXPECT_TRUE(flags.standalone);
  EXPECT_EQ(flags.nproc, 3);
  EXPECT_EQ(flags.seed, -7);
  EXPECT_EQ(flags.lr, 0.5);
  EXPECT_EQ(flags.address, "::1");
  EXPECT_EQ(flags.paths, (Words{"a", "b"}));
  EXPECT_EQ(flags.model, "cnn");
  EXPECT_TRUE(flags.arguments.given("--seed"));
}

TEST(Arguments, KeepDefaultsWhenNotGiven) {
  Flags flags;
  EXPECT_TRUE(flags.arguments.parse({}, flags.out));
  EXPECT_FALSE(flags.standalone);
  EXPECT_EQ(flags.nproc, 1);
  EXPECT_EQ(flags.model, "mlp");
  EXPECT_FALSE(flags.arguments.given("--seed"));
}

TEST(Arguments, TakeUnderscoresForDashes) {
  Flags flags;
  EXPECT_TRUE(flags.arguments.parse({"--nproc_per_node=2", "--master_addr", "x"}, flags.out));
  EXPECT_EQ(flags.nproc, 2);
  EXPECT_EQ(flags.address, "x");
}

TEST(Arguments, RefuseAnUnknownFlagWithTheNearest) {
  EXPECT_EQ(Flags().refusal({"--nproc-per-nod", "3"}),
            "unknown flag \"--nproc-per-nod\"; did you mean \"--nproc-per-node\"? (see ddproof try "
            "--help)");
  EXPECT_EQ(Flags().refusal({"--nproc_per_nod=3"}),
            "unknown flag \"--nproc_per_nod\"; did you mean \"--nproc-per-node\"? (see ddproof try "
            "--help)");
  EXPECT_EQ(Flags().refusal({"--xyzzy"}), "unknown flag \"--xyzzy\" (see ddproof try --help)");
  EXPECT_EQ(Flags().refusal({"-x"}), "unknown flag \"-x\" (see ddproof try --help)");
}

TEST(Arguments, RefuseBadValuesSayingWhatIsAllowed) {
  for (const char* value : {"abc", "", "0", "65", "1.0", "-1", "1 ", "99999999999999999999"}) {
    EXPECT_EQ(
        Flags().refusal({"--nproc-per-node", value}),
        "--nproc-per-node: \"" + std::string(value) +
            "\" is not allowed; allowed: a whole number from 1 to 64 (see ddproof try --help)");
  }
  EXPECT_EQ(Flags().refusal({"--lr", "nan"}),
            "--lr: \"nan\" is not allowed; allowed: a number from 0 to 1 (see ddproof try --help)");
  EXPECT_EQ(Flags().refusal({"--model", "rnn"}),
            "--model: \"rnn\" is not allowed; allowed: mlp|cnn (see ddproof try --help)");
}

TEST(Arguments, RefuseAnEmptyText) {
  for (const Words& words : {Words{"--master-addr", ""}, Words{"--master-addr="}}) {
    EXPECT_EQ(Flags().refusal(words),
              "--master-addr: \"\" is not allowed; allowed: a text that is not empty (see ddproof "
              "try --help)");
  }
  EXPECT_EQ(Flags().refusal({"--path", "a", "--path", ""}),
            "--path: \"\" is not allowed; allowed: a text that is not empty (see ddproof try "
            "--help)");
}

TEST(Arguments, RefuseAMissingValueAndAStrayWord) {
  EXPECT_EQ(Flags().refusal({"--seed"}), "--seed: a value must follow (see ddproof try --help)");
  EXPECT_EQ(Flags().refusal({"stray"}), "unexpected word \"stray\" (see ddproof try --help)");
}

TEST(Arguments, RefuseAValueForAFlagWithoutOne) {
  EXPECT_EQ(Flags().refusal({"--standalone=no"}),
            "--standalone: takes no value, got \"no\" (see ddproof try --help)");
}

TEST(Arguments, RefuseAFlagGivenTwice) {
  EXPECT_EQ(Flags().refusal({"--seed", "1", "--seed", "2"}),
            "--seed: is given twice; give it once (see ddproof try --help)");
  EXPECT_EQ(Flags().refusal({"-o", "x", "--master_addr=y"}),
            "--master_addr: is given twice; give it once (see ddproof try --help)");
  EXPECT_EQ(Flags().refusal({"--standalone", "--standalone"}),
            "--standalone: is given twice; give it once (see ddproof try --help)");
}

TEST(Arguments, VariablesStandForFlagsThatAreNotGiven) {
  const MapEnvironment environment(MapEnvironment::Variables{{"TRY_NPROC_PER_NODE", "3"},
                                                             {"TRY_STANDALONE", "1"},
                                                             {"TRY_MASTER_ADDR", "variable"},
                                                             {"TRY_HELP", "1"},
                                                             {"SEED", "4"}});
  Flags flags;
  flags.arguments.variables("TRY_", environment);
  ASSERT_TRUE(flags.arguments.parse({"-o", "word"}, flags.out));
  EXPECT_EQ(flags.nproc, 3);
  EXPECT_TRUE(flags.standalone);
  EXPECT_EQ(flags.address, "word");
  EXPECT_EQ(flags.seed, 0);
  EXPECT_TRUE(flags.arguments.given("--nproc-per-node"));
}

TEST(Arguments, RefuseABadVariableByName) {
  const auto refusal = [](const std::string& name, const std::string& value) {
    const MapEnvironment environment(MapEnvironment::Variables{{name, value}});
    Flags flags;
    flags.arguments.variables("TRY_", environment);
    return flags.refusal({});
  };
  EXPECT_EQ(refusal("TRY_NPROC_PER_NODE", "65"),
            "--nproc-per-node: \"65\" is not allowed; allowed: a whole number from 1 to 64 "
            "(TRY_NPROC_PER_NODE in the environment) (see ddproof try --help)");
  EXPECT_EQ(refusal("TRY_STANDALONE", "on"),
            "--standalone: \"on\" is not allowed; allowed: 0 or 1 (TRY_STANDALONE in the "
            "environment) (see ddproof try --help)");
  EXPECT_EQ(refusal("TRY_STANDALONE", "0"), "accepted");
}

TEST(Arguments, LeaveTheRestAsTyped) {
  for (const Words& words :
       {Words{"--nproc-per-node", "2", "prog", "--seed", "x", "--", "-z"},
        Words{"--nproc-per-node=2", "--", "prog", "--seed", "x", "--", "-z"}}) {
    Flags flags;
    Words rest;
    flags.arguments.rest("PROGRAM", rest, "the program");
    EXPECT_TRUE(flags.arguments.parse(words, flags.out));
    EXPECT_EQ(rest, (Words{"prog", "--seed", "x", "--", "-z"}));
    EXPECT_EQ(flags.seed, 0);
  }
}

TEST(Arguments, HelpListsFlagsWithDefaults) {
  Flags flags;
  EXPECT_FALSE(flags.arguments.parse({"--help"}, flags.out));
  for (const char* part : {"Tries flags.", "--nproc-per-node N", "processes", "mlp|cnn"}) {
    EXPECT_NE(flags.out.str().find(part), std::string::npos) << flags.out.str();
  }
}

TEST(Arguments, HelpShowsNoDefaultThatIsNotAllowed) {
  Flags flags;
  flags.seed = 11;
  int steps = 11;
  flags.arguments.number("--steps", steps, 1, 10, "steps");
  EXPECT_FALSE(flags.arguments.parse({"--help"}, flags.out));
  EXPECT_NE(flags.out.str().find("--nproc-per-node N=1"), std::string::npos) << flags.out.str();
  EXPECT_EQ(flags.out.str().find("--steps N="), std::string::npos) << flags.out.str();
}

TEST(DidYouMean, ProposesOnlyWhatIsNear) {
  EXPECT_EQ(did_you_mean("trian", {"train", "run"}), "; did you mean \"train\"?");
  EXPECT_EQ(did_you_mean("rnu", {"train", "run"}), "; did you mean \"run\"?");
  EXPECT_EQ(did_you_mean("fun", {"train", "sampler"}), "");
  EXPECT_EQ(did_you_mean("rum", {"train", "run"}), "; did you mean \"run\"?");
  EXPECT_EQ(did_you_mean("", {"run"}), "");
}

}  // namespace
}  // namespace ddproof
