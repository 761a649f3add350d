// Clipping by the global norm against PyTorch 1.13.1, within what the order of a sum may change.
#include "reference/optim/clip_grad_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/oracle/rounding_bound.h"
#include "tests/unit/optimizer_problem.h"

namespace ddproof {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Parameters with these gradients.
template <class T>
class Gradients {
 public:
  explicit Gradients(const std::vector<std::vector<T>>& gradients) {
    for (const std::vector<T>& gradient : gradients) {
      problems_.push_back(std::make_unique<Problem<T>>(gradient));
      Parameter<T>& parameter = problems_.back()->parameter;
      std::ranges::copy(gradient, parameter.gradient.data());
      parameter.name = "w" + std::to_string(problems_.size());
      parameters_.push_back(&parameter);
    }
  }
  const std::vector<Parameter<T>*>& parameters() const { return parameters_; }
  std::vector<T> at(std::size_t i) const {
    return values<T>(std::as_const(parameters_[i]->gradient).span());
  }

 private:
  std::vector<std::unique_ptr<Problem<T>>> problems_;
  std::vector<Parameter<T>*> parameters_;
};

void expect_near(double ours, double theirs, double relative) {
  if (std::isnan(theirs)) {
    EXPECT_TRUE(std::isnan(ours));
  } else if (std::isinf(theirs)) {
    EXPECT_EQ(ours, theirs);
  } else {
    EXPECT_LE(std::abs(ours - theirs), relative * std::abs(theirs)) << ours << " " << theirs;
  }
}

template <class T>
void expect_golden(const json& test, const Precision& precision) {
  std::vector<std::vector<T>> gradients;
  double terms = 0;
  for (const json& list : test["gradients"]) {
    gradients.push_back(from_hex<T>(list));
    terms += static_cast<double>(list.size());
  }
  const Gradients<T> ours(gradients);
  const double norm = clip_grad_norm(ours.parameters(), {.max_norm = hex_float(test["max_norm"])});
  // Each side adds squares of one sign, so either sum is within gamma of `terms`, and PyTorch takes
  // a root and a square per parameter on the way; a factor and a product come after the norm.
  const double relative = 2 * gamma(terms + 8, precision);
  expect_near(norm, hex_float(test["norm"]), relative);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::vector<T> clipped = ours.at(i);
    const std::vector<T> theirs = from_hex<T>(test["clipped"][i]);
    for (std::size_t j = 0; j < clipped.size(); ++j) expect_near(clipped[j], theirs[j], relative);
  }
}

TEST(ClipGradNormGolden, EveryCaseEqualsPyTorchUpToTheOrderOfTheSum) {
  const json golden = read_golden("clip_grad_norm.json");
  ASSERT_EQ(golden["cases"].size(), 22u);
  for (const json& test : golden["cases"]) {
    SCOPED_TRACE(test["dtype"].get<std::string>() + " to " + test["max_norm"].get<std::string>());
    if (test["dtype"] == "float64") {
      expect_golden<double>(test, kPrecisionOf<double>);
    } else {
      expect_golden<float>(test, kPrecisionOf<float>);
    }
  }
}

TEST(ClipGradNorm, TakesTheNormOverAllParameters) {
  const Gradients<float> gradients({{2.0f}, {3.0f, 6.0f}});
  EXPECT_EQ(clip_grad_norm(gradients.parameters(), {.max_norm = 7}), 7);
  EXPECT_LT(gradients.at(1)[1], 6.0f);  // 7 / (7 + 1e-6)
  EXPECT_GT(gradients.at(1)[1], 5.99f);
  clip_grad_norm(gradients.parameters(), {.max_norm = 0});
  EXPECT_EQ(gradients.at(0), std::vector<float>{0});
}

TEST(ClipGradNorm, LeavesShorterGradientsAsTheyAre) {
  const Gradients<float> gradients({{2.0f}, {3.0f, 6.0f}});
  EXPECT_EQ(clip_grad_norm(gradients.parameters(), {.max_norm = 7.1}), 7);
  EXPECT_EQ(clip_grad_norm(gradients.parameters(), {.max_norm = kInfinity}), 7);
  EXPECT_EQ(gradients.at(0), std::vector<float>{2});
}

TEST(ClipGradNorm, SkipsParametersWithoutAGradient) {
  const Gradients<float> gradients({{3.0f}, {1e30f}, {4.0f}});
  gradients.parameters()[1]->has_gradient = false;
  EXPECT_EQ(clip_grad_norm(gradients.parameters(), {.max_norm = 1}), 5);
  EXPECT_EQ(gradients.at(1), std::vector<float>{1e30f});
  for (Parameter<float>* parameter : gradients.parameters()) parameter->has_gradient = false;
  EXPECT_EQ(clip_grad_norm(gradients.parameters(), {.max_norm = 1}), 0);
}

std::string error_of(const Gradients<float>& gradients, const ClipOptions& options) {
  try {
    clip_grad_norm(gradients.parameters(), options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ClipGradNorm, ANormThatIsNotFiniteIsAnErrorWhereAskedFor) {
  const Gradients<float> gradients({{1.0f}, {1.0f, NAN}, {INFINITY}});
  EXPECT_EQ(error_of(gradients, {.max_norm = 1, .error_if_nonfinite = true}),
            "clip_grad_norm: the squares of the gradient of w2 add up to nan, so gradients cannot "
            "be clipped; lower the learning rate, or look at the data");
  EXPECT_EQ(gradients.at(0), std::vector<float>{1});
  EXPECT_EQ(error_of(gradients, {.max_norm = 1}), "");
  EXPECT_TRUE(std::isnan(gradients.at(0)[0]));
}

TEST(ClipGradNorm, ErrorsNameTheValueAndTheRange) {
  const Gradients<float> gradients(std::vector<std::vector<float>>{{1.0f}});
  EXPECT_EQ(error_of(gradients, {.max_norm = -1}),
            "clip_grad_norm max_norm -1: expected at least 0");
  EXPECT_EQ(error_of(gradients, {.max_norm = NAN}),
            "clip_grad_norm max_norm nan: expected at least 0");
}

}  // namespace
}  // namespace ddproof
