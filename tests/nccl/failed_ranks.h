// What the tests of failures share: a small world on the stand-in, and what its ranks were told.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/nccl/standin_world.h"

namespace ddproof {

using Lines = std::vector<std::string>;

inline constexpr int kRanks = 4;
inline constexpr Duration kTimeout = std::chrono::seconds(5);
// The timeout, the time in which ranks agree, and the time in which they leave.
inline constexpr Duration kBound = kTimeout + std::chrono::seconds(3);

inline StandinWorldOptions world_of(int ranks, std::vector<standin::Script> scripts = {},
                                    std::uint64_t seed = 1) {
  StandinWorldOptions options;
  options.world = {.world_size = ranks, .seed = seed, .timeout = kTimeout};
  options.machine.scripts = std::move(scripts);
  return options;
}

struct Failed {
  CommErrorKind kind = CommErrorKind::kUnsupported;
  std::vector<int> culprits;
  std::string text;
};

// What each rank's error was; nothing for ranks that succeeded.
inline std::vector<std::optional<Failed>> errors_of(const sim::Report& report) {
  std::vector<std::optional<Failed>> errors;
  for (const sim::RankReport& rank : report.ranks) {
    errors.emplace_back();
    if (!rank.error) continue;
    try {
      std::rethrow_exception(rank.error);
    } catch (const CommError& error) {
      errors.back() = Failed{error.kind(), error.culprits(), error.what()};
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not a CommError: " << error.what();
    }
  }
  return errors;
}

// Every rank ends so, in time, without a misuse.
inline void expect_all(const StandinReport& report, CommErrorKind kind,
                       const std::vector<int>& culprits, const std::string& text) {
  int rank = 0;
  for (const auto& error : errors_of(report.run)) {
    SCOPED_TRACE("rank " + std::to_string(rank++));
    ASSERT_TRUE(error.has_value()) << "did not fail";
    EXPECT_EQ(error->kind, kind) << error->text;
    EXPECT_EQ(error->culprits, culprits) << error->text;
    EXPECT_NE(error->text.find(text), std::string::npos) << error->text;
  }
  EXPECT_EQ(report.complaints, Lines{});
  EXPECT_LE(Duration(report.run.virtual_time), kBound);
}

}  // namespace ddproof
