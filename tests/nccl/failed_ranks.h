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

// Every other rank is told of this one, without waiting for the timeout and without a misuse.
inline void expect_told_of(const StandinReport& report, int lost) {
  const auto errors = errors_of(report.run);
  for (int rank = 0; rank < static_cast<int>(errors.size()); ++rank) {
    if (rank == lost) continue;
    const auto& error = errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error.has_value()) << rank;
    EXPECT_EQ(error->kind, CommErrorKind::kPeerLost) << error->text;
    EXPECT_EQ(error->culprits, std::vector{lost}) << error->text;
  }
  EXPECT_EQ(report.complaints, Lines{});
  EXPECT_LE(Duration(report.run.virtual_time), std::chrono::seconds(4));
}

// The rank has called abort().
inline void expect_aborted(const StandinReport& report, int rank) {
  const auto error = errors_of(report.run)[static_cast<std::size_t>(rank)];
  ASSERT_TRUE(error.has_value()) << rank;
  EXPECT_EQ(error->kind, CommErrorKind::kAborted) << error->text;
  expect_told_of(report, rank);
}

// The rank has died.
inline void expect_crashed(const StandinReport& report, int rank) {
  EXPECT_EQ(report.run.ranks[static_cast<std::size_t>(rank)].outcome, sim::RankOutcome::kCrashed);
  EXPECT_EQ(report.run.abandoned, 0u);
  expect_told_of(report, rank);
}

}  // namespace ddproof
