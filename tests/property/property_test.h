// What the property tests share: options from RC_PARAMS, and the expectation that prints cases,
// classes and seed of a run whether it holds or not.
#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "backends/local/os_runtime.h"
#include "properties/property.h"

namespace ddproof {

// Fixed cases in every run, unless RC_PARAMS asks for others ("seed=7 max_success=1000").
inline PropertyOptions property_options(Runtime& runtime, int cases) {
  PropertyOptions options{.cases = cases};
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  options.replay += std::string(" ctest --test-dir build -V -R '") + test->test_suite_name() + "." +
                    test->name() + "'";
  apply_rc_params(runtime.environment().get("RC_PARAMS").value_or(""), options);
  return options;
}

inline void expect_holds(const PropertyResult& result) {
  std::cout << describe(result) << std::endl;
  EXPECT_TRUE(result.holds) << describe(result);
}

// For planted bugs: found within the cases, and shrunk to a case that reads `shrunk`.
inline void expect_found(const PropertyResult& result, const std::string& shrunk) {
  std::cout << describe(result) << std::endl;
  EXPECT_FALSE(result.holds) << describe(result);
  EXPECT_TRUE(result.failure.find(shrunk) != std::string::npos)
      << "expected to read: " << shrunk << "\n"
      << describe(result);
}

}  // namespace ddproof
