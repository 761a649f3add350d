// Softmax cross-entropy against PyTorch's outputs, within bounds derived from its formula.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/model/loss.h"
#include "tests/support/golden.h"

namespace ddproof {
namespace {

using nlohmann::json;

// How far one row's loss and gradient may be from the exact ones, for any implementation of
// log(sum of exp(x - m)) - (x_t - m) with exp and log within 1 ulp (2u).
struct RowBound {
  double loss = 0;
  std::vector<double> gradient;
};

// To first order, with the second order covered by 2^-10 of the whole (all terms are below 2^-10):
//   d_j = x_j - m: u|d_j|, so exp(d_j) is off by (|d_j| + 2)u of itself
//   S: rho = [sum e_j (|d_j| + 2)]/S u + (n-1)u of itself; log S: rho + 2u|log S|
//   loss: + u|d_t| + u|loss|, and where x - (m + log S) is computed instead: + 2u(|m| + |log S|)
//   p_j = e_j/S, or exp(log p_j): the error of log p_j, + (|d_j| + 5)u + rho, of itself
RowBound row_bound(const std::vector<double>& x, std::int64_t target, double u) {
  const double m = *std::max_element(x.begin(), x.end());
  double sum = 0, weighted = 0;
  for (double value : x) {
    sum += std::exp(value - m);
    weighted += std::exp(value - m) * (m - value + 2);
  }
  const double rho = (weighted / sum + static_cast<double>(x.size()) - 1) * u;
  const double log_sum = std::log(sum);
  const auto log_error = [&](double value) {
    const double d = m - value;
    return rho + u * (2 * log_sum + d + (log_sum + d) + 2 * (std::fabs(m) + log_sum));
  };
  RowBound bound;
  bound.loss = log_error(x[static_cast<std::size_t>(target)]) * (1 + 0x1p-10);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double p = std::exp(x[j] - m) / sum;
    const double error = p * (log_error(x[j]) + rho + (m - x[j] + 5) * u);
    const double result = std::fabs(p - (static_cast<std::int64_t>(j) == target ? 1 : 0));
    // Subtracting 1, rounding the factor and multiplying by it: 3u of the result.
    bound.gradient.push_back((error + 3 * u * (result + error)) * (1 + 0x1p-10));
  }
  return bound;
}

template <class T>
struct Case {
  std::vector<std::vector<double>> logits;
  std::vector<std::int64_t> targets;
  std::string reduction;
  std::int64_t ignore_index;

  explicit Case(const json& test)
      : logits(test["logits"].get<std::vector<std::vector<double>>>()),
        targets(test["target"].get<std::vector<std::int64_t>>()),
        reduction(test["opt"]["reduction"]),
        ignore_index(test["opt"].value("ignore_index", std::int64_t{-100})) {}

  std::int64_t rows() const { return static_cast<std::int64_t>(logits.size()); }
  std::int64_t classes() const { return static_cast<std::int64_t>(logits[0].size()); }
};

// Both sides may be off by the bound.
template <class T>
void expect_gradient(const Case<T>& c, const json& test, const Tensor<T>& gradient, double factor,
                     double u) {
  for (std::size_t row = 0; row < c.logits.size(); ++row) {
    const bool ignored = c.targets[row] == c.ignore_index;
    const RowBound bound = row_bound(c.logits[row], c.targets[row], u);
    for (std::size_t j = 0; j < c.logits[row].size(); ++j) {
      const double actual = static_cast<double>(gradient.span()[row * c.logits[row].size() + j]);
      const double expected = test["grad"][row][j];
      const double allowed = ignored ? 0 : 2 * factor * bound.gradient[j];
      EXPECT_LE(std::fabs(actual - expected), allowed) << row << ", " << j;
    }
  }
}

template <class T>
void expect_losses(const Case<T>& c, const json& test, SoftmaxCrossEntropy<T>& loss, T reduced,
                   double u) {
  double magnitude = 0, total_bound = 0;
  for (std::size_t row = 0; row < c.logits.size(); ++row) {
    if (c.targets[row] == c.ignore_index) continue;
    const double bound = row_bound(c.logits[row], c.targets[row], u).loss;
    const double actual = static_cast<double>(loss.row_losses()[row]);
    if (c.reduction == "none") {
      EXPECT_LE(std::fabs(actual - test["loss"][row].get<double>()), 2 * bound);
    }
    magnitude += std::fabs(actual) + bound;
    total_bound += bound;
  }
  if (c.reduction == "none") return;
  if (c.reduction == "mean" && loss.counted() == 0) {
    EXPECT_EQ(test["loss"], "nan");
    EXPECT_TRUE(std::isnan(reduced));
    return;
  }
  // gamma of the sum and one division.
  const double n = static_cast<double>(c.rows());
  const double divisor = c.reduction == "mean" ? static_cast<double>(loss.counted()) : 1;
  const double allowed = 2 * (total_bound + n * u / (1 - n * u) * magnitude) / divisor;
  EXPECT_LE(std::fabs(static_cast<double>(reduced) - test["loss"][0].get<double>()), allowed);
}

template <class T>
void expect_golden(const json& test, double u) {
  const Case<T> c(test);
  Cpu<T> device;
  Tensor<T> logits(device, {c.rows(), c.classes()});
  std::size_t i = 0;
  for (const auto& row : c.logits) {
    for (double value : row) logits.span()[i++] = static_cast<T>(value);
  }
  SoftmaxCrossEntropy<T> loss(
      {.reduction = c.reduction == "mean" ? Reduction::kMean : Reduction::kSum,
       .ignore_index = c.ignore_index});
  loss.forward(logits, c.targets);
  const T reduced = loss.value();
  expect_losses(c, test, loss, reduced, u);
  const double factor =
      c.reduction == "mean" && loss.counted() > 0 ? 1.0 / static_cast<double>(loss.counted()) : 1;
  expect_gradient(c, test, loss.backward(), factor, u);
}

TEST(SoftmaxCrossEntropy, EqualsPyTorchWithinItsRoundingBound) {
  int tried = 0;
  const json golden = read_golden("cross_entropy.json");
  for (const json& test : golden["cases"]) {
    // Label smoothing and class weights are not offered.
    if (test["opt"].contains("label_smoothing") || test["opt"].contains("weight")) continue;
    SCOPED_TRACE(test["case"].get<std::string>() + " " + test["dtype"].get<std::string>() + " " +
                 test["opt"].dump());
    ++tried;
    if (test["dtype"] == "float64") {
      expect_golden<double>(test, 0x1p-53);
    } else {
      expect_golden<float>(test, 0x1p-24);
    }
  }
  EXPECT_EQ(tried, 32);
}

std::string cross_entropy_refusal(const Shape& shape, const std::vector<std::int64_t>& targets) {
  Cpu<float> device;
  Tensor<float> logits(device, shape);
  SoftmaxCrossEntropy<float> loss;
  try {
    loss.forward(logits, targets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SoftmaxCrossEntropy, RefusesALabelOutOfRangeByRow) {
  EXPECT_EQ(cross_entropy_refusal({3, 10}, {0, 9, 10}),
            "cross-entropy target: row 2 has 10, expected 0 to 9 or ignore_index -100");
  EXPECT_EQ(cross_entropy_refusal({2, 10}, {-1, 0}),
            "cross-entropy target: row 0 has -1, expected 0 to 9 or ignore_index -100");
  EXPECT_EQ(cross_entropy_refusal({2, 10}, {-100, 0}), "accepted");
}

TEST(SoftmaxCrossEntropy, RefusesShapesThatDoNotMatch) {
  EXPECT_EQ(cross_entropy_refusal({3, 10}, {0, 1}),
            "cross-entropy: input shape [3, 10], expected [2, 10]");
  EXPECT_EQ(cross_entropy_refusal({3}, {0, 1, 2}),
            "cross-entropy: input shape [3], expected [3, 1]");
  EXPECT_EQ(cross_entropy_refusal({2, 0}, {0, 0}),
            "cross-entropy: input shape [2, 0], expected [2, 1]");
}

TEST(SoftmaxCrossEntropy, ScalesTheGradientByTheGivenFactor) {
  Cpu<double> device;
  Tensor<double> logits(device, {2, 2});
  SoftmaxCrossEntropy<double> loss;
  loss.forward(logits, std::vector<std::int64_t>{0, 1});
  const std::vector<double> expected = {-1, 1, 1, -1};  // 4 * (1/2 - 1) / 2
  const auto gradient = loss.backward(4).span();
  EXPECT_EQ(std::vector<double>(gradient.begin(), gradient.end()), expected);
}

TEST(CountCorrect, TakesTheFirstLargestLogit) {
  Cpu<float> device;
  Tensor<float> logits(device, {4, 3});
  const std::vector<float> values = {1, 3, 2, 5, 5, 0, 0, 0, 7, 1, 1, 1};
  std::copy(values.begin(), values.end(), logits.data());
  EXPECT_EQ(count_correct<float>(logits, std::vector<std::int64_t>{1, 0, 2, 0}), 4);
  EXPECT_EQ(count_correct<float>(logits, std::vector<std::int64_t>{1, 1, -100, 2}), 1);
}

}  // namespace
}  // namespace ddproof
