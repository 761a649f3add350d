// The runner of properties itself: it counts, finds, shrinks, repeats, and reads RC_PARAMS.
#include <gtest/gtest.h>

#include <stdexcept>

#include "backends/api/error.h"
#include "properties/property.h"
#include "tests/property/property_test.h"

namespace ddproof {
namespace {

// Fails from `limit` on; at 500 and 501 it throws.
Property<int> below(int limit) {
  return {"below", rc::gen::inRange(0, 1000),
          [](int value) { return "value=" + std::to_string(value); },
          [](int value) { return std::vector<std::string>{value % 2 == 0 ? "even" : "odd"}; },
          [limit](int value) -> std::string {
            if (value < limit) return "";
            if (limit == 500) throw std::runtime_error("too large");
            if (limit == 501) throw value;
            return "too large";
          }};
}

TEST(PropertyRun, CountsCasesAndClasses) {
  OsRuntime runtime;
  const PropertyResult result = run_property(below(1000), {.seed = 3, .cases = 200}, runtime);
  EXPECT_TRUE(result.holds);
  EXPECT_EQ(result.cases, 200);
  EXPECT_EQ(result.classes.at("even") + result.classes.at("odd"), 200);
  EXPECT_EQ(result.failure, "");
}

TEST(PropertyRun, ShrinksToTheSmallestCaseThatFails) {
  OsRuntime runtime;
  PropertyOptions options{.seed = 3, .cases = 200};
  options.replay = "run {name} {seed} {cases} {size}";
  const PropertyResult result = run_property(below(17), options, runtime);
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.failure, "value=17\n  too large");
  EXPECT_EQ(result.replay, "run below 3 200 100");
}

TEST(PropertyRun, AsksForMoreAfterEveryFailureTheSmallestLast) {
  OsRuntime runtime;
  PropertyOptions options{.seed = 3, .cases = 200};
  int asked = 0;
  options.tell_more = [&asked] { return "\n  failure " + std::to_string(++asked); };
  EXPECT_EQ(run_property(below(1000), options, runtime).failure, "");
  EXPECT_EQ(asked, 0);
  const PropertyResult result = run_property(below(17), options, runtime);
  EXPECT_GT(asked, 1);
  EXPECT_EQ(result.failure, "value=17\n  too large\n  failure " + std::to_string(asked));
}

TEST(PropertyRun, TakesAnExceptionForAFailure) {
  OsRuntime runtime;
  const PropertyResult result = run_property(below(500), {.seed = 3, .cases = 200}, runtime);
  EXPECT_EQ(result.failure, "value=500\n  threw: too large");
}

TEST(PropertyRun, TakesAnythingThrownForAFailure) {
  OsRuntime runtime;
  const PropertyResult result = run_property(below(501), {.seed = 3, .cases = 200}, runtime);
  EXPECT_EQ(result.failure, "value=501\n  threw what is no std::exception");
}

TEST(PropertyRun, RepeatsTheSizeOnlyWhereItIsNotTheDefault) {
  OsRuntime runtime;
  PropertyOptions options{.seed = 3, .cases = 200};
  options.replay = "{rc_params}run {name}";
  EXPECT_EQ(run_property(below(17), options, runtime).replay, "run below");
  options.max_size = 20;
  EXPECT_EQ(run_property(below(17), options, runtime).replay, "RC_PARAMS='max_size=20' run below");
}

TEST(PropertyRun, RepeatsTheSameCasesFromTheSameSeed) {
  OsRuntime runtime;
  std::vector<std::vector<int>> drawn(3);
  for (std::size_t i = 0; i < 3; ++i) {
    Property<int> property = below(1000);
    property.check = [&drawn, i](int value) {
      drawn[i].push_back(value);
      return std::string();
    };
    run_property(property, {.seed = i < 2 ? 5u : 6u, .cases = 50}, runtime);
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0], drawn[2]);
}

TEST(PropertyRun, AMachineWithoutResourcesIsNoFailure) {
  OsRuntime runtime;
  Property<int> property = below(1000);
  property.check = [](int) -> std::string { throw ResourceError("no descriptors left"); };
  EXPECT_THROW(run_property(property, {.seed = 5, .cases = 50}, runtime), ResourceError);
}

TEST(PropertyRun, CountsOneCaseInTheSingular) {
  EXPECT_EQ(describe({.name = "x", .holds = true, .cases = 1, .seed = 9}),
            "holds  x: 1 case in 0.00 s, seed 9");
}

TEST(PropertyRun, DescribesAFailureWithItsReplayLine) {
  PropertyResult result{.name = "x", .cases = 3, .seconds = 0.5, .seed = 9};
  result.classes["odd"] = 2;
  result.measures["error/bound"] = 0.25;
  result.failure = "value=17\n  too large";
  result.replay = "run it";
  EXPECT_EQ(describe(result),
            "FAILED x: 3 cases in 0.50 s, seed 9 (odd 2, error/bound 0.25)\n"
            "  value=17\n  too large\n  replay: run it");
}

std::string rc_params_error(const std::string& text) {
  PropertyOptions options;
  try {
    apply_rc_params(text, options);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(PropertyRun, ReadsRcParams) {
  PropertyOptions options;
  apply_rc_params(" seed=7  max_success=12 max_size=5 noshrink=1", options);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.cases, 12);
  EXPECT_EQ(options.max_size, 5);
  EXPECT_FALSE(options.shrink);
}

TEST(PropertyRun, RefusesRcParamsThatItDoesNotKnow) {
  EXPECT_EQ(rc_params_error("max_sucess=5"),
            "RC_PARAMS max_sucess: unknown key; known are seed, max_success, max_size, noshrink");
  EXPECT_EQ(rc_params_error("seed=x"), "RC_PARAMS seed=x: expected a whole number from 0");
  EXPECT_EQ(rc_params_error("max_success=0"),
            "RC_PARAMS max_success=0: expected a whole number from 1");
}

}  // namespace
}  // namespace ddproof
