// Whole models against PyTorch's (tests/golden/models.json): names, logits, gradients and running
// statistics of one training step, and the evaluation after it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reference/compute/cpu.h"
#include "reference/model/loss.h"
#include "reference/model/models.h"
#include "tests/support/copy_of.h"
#include "tests/support/golden.h"
#include "tests/support/lcg.h"
#include "tests/support/precision.h"

namespace ddproof {
namespace {

using nlohmann::json;

template <class T>
struct Results {
  std::vector<std::string> names;
  std::vector<T> logits, evaluated_logits;
  T loss{};
  std::vector<std::vector<T>> gradients;  // of each parameter the first elements
  std::vector<T> gradient_norms;
  std::vector<std::vector<T>> buffers;
};

template <class T>
void draw_parameters(const json& c, Lcg& lcg, Module<T>& model) {
  const auto parameters = model.parameters();
  ASSERT_EQ(parameters.size(), c["parameters"].size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const json& of = c["parameters"][i];
    ASSERT_EQ(parameters[i]->name, of["name"].get<std::string>());
    ASSERT_EQ(parameters[i]->value.shape(), of["shape"].get<Shape>()) << parameters[i]->name;
    const bool scales = of["shape"].size() == 1 && parameters[i]->name.ends_with("weight");
    for (T& value : parameters[i]->value.span()) {
      value = static_cast<T>((scales ? 1 : 0) +
                             std::ldexp(lcg.unit(), -of["scale_exponent"].get<int>()));
    }
  }
}

std::vector<std::int64_t> draw_labels(const json& c, Lcg& lcg, std::int64_t count) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = lcg.draw();
    const bool ignored = c.contains("ignore_index") && r % 8 == 0;
    labels.push_back(ignored ? c["ignore_index"].get<std::int64_t>()
                             : r % c["classes"].get<std::int64_t>());
  }
  return labels;
}

template <class T>
Results<T> run_case(const json& c) {
  const auto shape = c["input"].get<Shape>();
  Cpu<T> device;
  const auto model = make_model<T>(c["model"].get<std::string>(), {shape[1], shape[2], shape[3]},
                                   c["classes"], device, 1);
  Lcg lcg(c["seed"]);
  Results<T> r;
  draw_parameters(c, lcg, *model);
  if (::testing::Test::HasFatalFailure()) return r;
  Tensor<T> input(device, shape);
  for (T& value : input.span()) value = static_cast<T>(lcg.unit());
  const Tensor<T>& logits = model->forward(input);
  const std::vector<std::int64_t> labels =
      draw_labels(c, lcg, logits.count() / c["classes"].get<std::int64_t>());
  r.logits = copy_of(logits);
  SoftmaxCrossEntropy<T> loss({.ignore_index = c.value("ignore_index", std::int64_t{-100})});
  loss.forward(logits, labels);
  r.loss = loss.value();
  model->backward(loss.backward(), {});
  for (const Parameter<T>* parameter : model->parameters()) {
    const std::vector<T> gradient = copy_of(parameter->gradient);
    double squares = 0;
    for (const T value : gradient) squares += static_cast<double>(value) * value;
    r.gradient_norms.push_back(static_cast<T>(std::sqrt(squares)));
    const auto first = std::min<std::size_t>(gradient.size(), 8);
    r.gradients.emplace_back(gradient.begin(), gradient.begin() + static_cast<long>(first));
  }
  for (const ModuleBuffer<T>* buffer : model->buffers()) {
    r.names.push_back(buffer->name);
    r.buffers.push_back(copy_of(buffer->value));
  }
  model->set_training(false);
  r.evaluated_logits = copy_of(model->forward(input));
  return r;
}

void expect_pytorchs_results(const json& c) {
  const auto in_float = run_case<float>(c);
  const auto in_double = run_case<double>(c);
  if (::testing::Test::HasFatalFailure()) return;
  expect_as_close_as_rounding_allows(in_float.logits, in_double.logits, c["logits"], "logits");
  expect_as_close_as_rounding_allows(in_float.evaluated_logits, in_double.evaluated_logits,
                                     c["evaluated_logits"], "logits in evaluation");
  expect_as_close_as_rounding_allows({in_float.loss}, {in_double.loss}, {c["loss"]}, "loss");
  for (std::size_t i = 0; i < in_double.gradients.size(); ++i) {
    const json& of = c["parameters"][i];
    const auto name = of["name"].get<std::string>();
    expect_as_close_as_rounding_allows(in_float.gradients[i], in_double.gradients[i],
                                       of["gradient"], name);
    expect_as_close_as_rounding_allows({in_float.gradient_norms[i]}, {in_double.gradient_norms[i]},
                                       {of["gradient_norm"]}, name);
  }
  ASSERT_EQ(in_double.buffers.size(), c["buffers"].size());
  for (std::size_t i = 0; i < in_double.buffers.size(); ++i) {
    const auto name = c["buffers"][i]["name"].get<std::string>();
    EXPECT_EQ(in_double.names[i], name);
    expect_as_close_as_rounding_allows(in_float.buffers[i], in_double.buffers[i],
                                       c["buffers"][i]["value"], name);
  }
}

void expect_pytorchs_results_of(const std::string& model) {
  const json golden = read_golden("models.json");
  int cases = 0;
  for (const json& c : golden["cases"]) {
    if (c["model"] != model) continue;
    expect_pytorchs_results(c);
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST(ModelGolden, ResNet8IsPyTorchs) { expect_pytorchs_results_of("resnet8"); }

TEST(ModelGolden, DeepLabIsPyTorchs) { expect_pytorchs_results_of("deeplab"); }

struct Interpolated {
  template <class T>
  static std::pair<std::vector<T>, std::vector<T>> run(const json& c) {
    Cpu<T> device;
    UpsampleBilinear<T> layer(device, "up", c["size"][0], c["size"][1]);
    Lcg lcg(c["seed"]);
    Tensor<T> x(device, c["shape"].get<Shape>());
    for (T& value : x.span()) value = static_cast<T>(lcg.unit());
    const Tensor<T>& y = layer.forward(x);
    Tensor<T> dy(device, y.shape());
    for (T& value : dy.span()) value = static_cast<T>(lcg.unit());
    return {copy_of(y), copy_of(layer.backward(dy, {}))};
  }
};

TEST(UpsampleBilinear, InterpolatesAsPyTorch) {
  const json golden = read_golden("bilinear.json");
  ASSERT_EQ(golden["cases"].size(), 7u);
  for (const json& c : golden["cases"]) {
    const auto [y_float, dx_float] = Interpolated::run<float>(c);
    const auto [y, dx] = Interpolated::run<double>(c);
    const std::string seed = "seed " + c["seed"].dump();
    expect_as_close_as_rounding_allows(y_float, y, c["y"], seed + ", y");
    expect_as_close_as_rounding_allows(dx_float, dx, c["dx"], seed + ", dx");
  }
}

}  // namespace
}  // namespace ddproof
