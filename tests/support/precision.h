// How far results in double may be from another library's, where no bound is known that says more.
//
// The allowance comes from the computation itself: done in float and in double from the same
// numbers, it shows how far rounding carries its results. Rounding errors grow alike in both
// precisions, in proportion to the unit roundoff (ORACLES section 2), so results in double must be
// 2^29 times closer than that, up to kOrders: two libraries add in different orders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace ddproof {

inline constexpr double kOrders = 16;

// One tensor: `expected` is the other library's in double, the others ours. The largest difference
// of its elements counts, since a single one may be right by chance; results that float gets exact
// are allowed its unit roundoff.
inline void expect_as_close_as_rounding_allows(const std::vector<float>& in_float,
                                               const std::vector<double>& in_double,
                                               const std::vector<double>& expected,
                                               const std::string& what) {
  ASSERT_EQ(in_float.size(), expected.size()) << what;
  ASSERT_EQ(in_double.size(), expected.size()) << what;
  double carried = 0, largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    carried = std::max(carried, std::fabs(static_cast<double>(in_float[i]) - in_double[i]));
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(in_double[i] - expected[i]));
  }
  carried = std::max(carried, 0x1p-24 * largest);
  EXPECT_LE(error, kOrders * 0x1p-29 * carried) << what;
}

}  // namespace ddproof
