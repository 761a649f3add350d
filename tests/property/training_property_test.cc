// N ranks train what one device trains, on every backend, and planted bugs of distributed training
// that the property must find and shrink.
#include <gtest/gtest.h>

#include "backends/registry/registry.h"
#include "properties/training_properties.h"
#include "tests/property/mutant_group.h"
#include "tests/property/property_test.h"
#include "tests/property/world_backends.h"

namespace ddproof {
namespace {

class Training : public testing::TestWithParam<std::string> {};

TEST_P(Training, EqualsOneDevice) {
  OsRuntime runtime;
  const auto backend = make_backend(GetParam());
  const int cases = GetParam() == "sim" ? 100 : 20;
  const auto result = equals_one_device({*backend, 4}, property_options(runtime, cases), runtime);
  expect_holds(result);
  EXPECT_GT(result.classes.at("scaled gradients"), result.cases / 2);
  EXPECT_GT(result.classes.at("momentum"), result.cases / 4);
}

INSTANTIATE_TEST_SUITE_P(Backends, Training, testing::ValuesIn(world_backends()),
                         [](const auto& info) { return info.param; });

class TrainingMutants : public testing::Test {
 protected:
  PropertyResult run(Mutation mutation) {
    const PropertyWorld world{*backend_, 4, mutate(std::move(mutation))};
    return equals_one_device(world, property_options(runtime_, 100), runtime_);
  }

  OsRuntime runtime_;
  std::unique_ptr<Backend> backend_ = make_backend(world_backends().front());
};

bool is_bucket(const Call& call) { return call.label.starts_with("bucket "); }

std::span<float> elements(const Call& call) {
  return {static_cast<float*>(call.output.data()), static_cast<std::size_t>(call.output.count())};
}

TEST_F(TrainingMutants, AWrongDivisorIsFound) {
  const auto result = run([](ProcessGroup& inner, Call call) {
    if (is_bucket(call)) {
      for (float& value : elements(call)) value *= 1 - 0x1p-10f;
    }
    return inner.submit(std::move(call));
  });
  expect_found(result, "world_size=1 batch_size=1 steps=1 model=mlp gradients=2^0");
}

TEST_F(TrainingMutants, ABucketThatIsNotReducedIsFound) {
  const auto result = run([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.label == "bucket 1") return std::make_shared<DoneWork>();
    return inner.submit(std::move(call));
  });
  expect_found(result, "steps=2 model=wide");
}

TEST_F(TrainingMutants, AGradientThatIsNotReducedIsFound) {
  const auto result = run([](ProcessGroup& inner, Call call) {
    // The last gradient of the bucket, before the count of missing ones.
    if (is_bucket(call))
      elements(call)[call.output.count() - 2] *= static_cast<float>(inner.size());
    return inner.submit(std::move(call));
  });
  expect_found(result, "world_size=2 batch_size=1 steps=1 model=mlp gradients=2^0");
}

TEST_F(TrainingMutants, ARankThatAddsNothingIsFound) {
  const auto result = run([](ProcessGroup& inner, Call call) {
    if (is_bucket(call) && inner.rank() == 1) {
      for (float& value : elements(call)) value = 0;
    }
    return inner.submit(std::move(call));
  });
  expect_found(result, "world_size=2 batch_size=1 steps=1 model=mlp gradients=2^0");
}

TEST_F(TrainingMutants, ParametersThatAreNotBroadcastAreFound) {
  // The ranks start apart: rank 1 keeps what it had, which is made to differ.
  const auto result = run([](ProcessGroup& inner, Call call) -> WorkPtr {
    const bool broadcast = call.op == Op::kBroadcast && call.output.type() == DType::kFloat32;
    WorkPtr work = inner.submit(Call(call));
    if (broadcast && inner.rank() == 1) {
      work->wait();
      elements(call)[0] += 1;
    }
    return work;
  });
  expect_found(result, "world_size=2 batch_size=1 steps=1 model=mlp gradients=2^0");
}

}  // namespace
}  // namespace ddproof
