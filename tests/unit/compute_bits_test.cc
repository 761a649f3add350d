// Bits that must not change: with the instruction set, the compiler, the batch that a sample is
// computed in, or the way a batch is cut into micro-batches.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/api/digest.h"
#include "reference/compute/cpu.h"
#include "reference/model/loss.h"
#include "reference/model/models.h"
#include "tests/unit/naive_layers.h"

namespace ddproof::testing {
namespace {

constexpr ImageShape kImage = {.channels = 1, .height = 28, .width = 28};
constexpr std::int64_t kClasses = 10;

template <class T>
std::vector<T> images(std::int64_t count) {
  std::mt19937_64 engine(11);
  return random_values<T>(engine, count * kImage.count());
}

std::vector<std::int64_t> labels(std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(i * 7 % kClasses);
  return result;
}

// Everything that one pass computes. Slices of samples can be passed one after another.
template <class T>
class Pass {
 public:
  Pass(const std::string& model, Isa isa)
      : device_(isa), model_(make_model<T>(model, kImage, kClasses, device_, 5)) {}

  // Samples [first, last) of `data`, with the loss summed so that slices add up.
  void run(std::vector<T>& data, std::int64_t first, std::int64_t last) {
    const Shape shape = {last - first, kImage.channels, kImage.height, kImage.width};
    const auto input = Tensor<T>::view(device_, data.data() + first * kImage.count(), shape);
    const std::vector<std::int64_t> all = labels(last);
    const Tensor<T>& logits = model_->forward(input);
    loss_.forward(logits, std::span(all).subspan(static_cast<std::size_t>(first)));
    append(logits_, logits.span());
    append(losses_, loss_.row_losses());
    model_->backward(loss_.backward(), {});
  }

  const std::vector<T>& logits() const { return logits_; }
  const std::vector<T>& losses() const { return losses_; }
  std::vector<T> gradients() const {
    std::vector<T> all;
    for (const Parameter<T>* parameter : model_->parameters()) {
      append(all, parameter->gradient.span());
    }
    return all;
  }

  std::uint64_t digest() const {
    std::uint64_t seed = 0;
    for (const std::vector<T>& part : {logits_, losses_, gradients()}) {
      seed = digest_of(std::as_bytes(std::span(part)), seed);
    }
    return seed;
  }

 private:
  static void append(std::vector<T>& to, std::span<const T> from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  Cpu<T> device_;
  std::unique_ptr<Module<T>> model_;
  SoftmaxCrossEntropy<T> loss_{{.reduction = Reduction::kSum}};
  std::vector<T> logits_;
  std::vector<T> losses_;
};

// As a memory comparison: signed zeros and NaN payloads count.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

template <class T>
void expect_digest(const std::string& model, std::uint64_t expected) {
  std::vector<T> data = images<T>(3);
  for (Isa isa : supported_isas()) {
    Pass<T> pass(model, isa);
    pass.run(data, 0, 3);
    EXPECT_EQ(pass.digest(), expected) << model << " on " << to_string(isa);
  }
}

// The stored digests hold for every compiler, optimisation level and processor. A change of the
// arithmetic, of an order or of the initial values changes them; nothing else may.
TEST(ModelBits, AreTheSameOnEveryInstructionSetAndCompiler) {
  expect_digest<float>("mlp", 0xa61a92baeb061599);
  expect_digest<double>("mlp", 0xd23175c75c5ca948);
  expect_digest<float>("cnn", 0x9f687722bf69cbe7);
  expect_digest<double>("cnn", 0xad54917f12b8d606);
}

template <class T>
void expect_cut_does_not_matter(const std::string& model, std::int64_t batch,
                                const std::vector<std::int64_t>& cuts) {
  std::vector<T> data = images<T>(batch);
  Pass<T> whole(model, best_isa());
  whole.run(data, 0, batch);
  Pass<T> parts(model, best_isa());
  std::int64_t first = 0;
  for (std::int64_t last : cuts) {
    parts.run(data, first, last);
    first = last;
  }
  EXPECT_TRUE(same_bits(parts.logits(), whole.logits())) << model;
  EXPECT_TRUE(same_bits(parts.losses(), whole.losses())) << model;
  EXPECT_TRUE(same_bits(parts.gradients(), whole.gradients())) << model;
}

TEST(ModelBits, DoNotDependOnHowABatchIsCutIntoMicroBatches) {
  for (const char* model : {"mlp", "cnn"}) {
    expect_cut_does_not_matter<float>(model, 7, {1, 2, 3, 4, 5, 6, 7});
    expect_cut_does_not_matter<float>(model, 35, {1, 18, 35});
    expect_cut_does_not_matter<double>(model, 9, {3, 4, 9});
  }
}

TEST(ModelBits, OfTheSumChangeWithItsOrder) {
  // The control of the tests above: data on which order matters.
  std::vector<float> data = images<float>(7);
  Pass<float> forwards("mlp", best_isa());
  forwards.run(data, 0, 7);
  Pass<float> backwards("mlp", best_isa());
  for (std::int64_t i = 7; i > 0; --i) backwards.run(data, i - 1, i);
  EXPECT_FALSE(same_bits(backwards.gradients(), forwards.gradients()));
}

}  // namespace
}  // namespace ddproof::testing
