// Sharded optimizer state: the bits of the unsharded one, at every world size, on every backend.
#include "reference/optim/zero_optimizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backends/registry/registry.h"
#include "reference/checkpoint/training_state.h"
#include "reference/compute/cpu.h"
#include "reference/optim/adam.h"
#include "reference/optim/sgd.h"
#include "reference/train/state_digest.h"
#include "tests/property/world_backends.h"

namespace ddproof {
namespace {

TEST(ZeroPartition, IsPyTorchs) {
  const std::vector<std::int64_t> counts{3, 9, 5, 5, 1, 9, 2};
  EXPECT_EQ(partition_parameters(counts, 3), (std::vector<int>{0, 0, 2, 2, 2, 1, 1}));
  EXPECT_EQ(partition_parameters(counts, 1), std::vector<int>(7, 0));
}

TEST(ZeroPartition, ARankMayOwnNothing) {
  EXPECT_EQ(partition_parameters(std::vector<std::int64_t>{4, 4}, 4), (std::vector<int>{0, 1}));
  EXPECT_EQ(partition_parameters({}, 2), std::vector<int>{});
}

constexpr std::int64_t kCounts[] = {3, 9, 5, 5, 1, 9, 2};

using Make = std::unique_ptr<Optimizer<float>> (*)(std::vector<Parameter<float>*>);

std::unique_ptr<Optimizer<float>> make_sgd(std::vector<Parameter<float>*> parameters) {
  return std::make_unique<Sgd<float>>(std::move(parameters),
                                      SgdOptions{.lr = 0.1, .momentum = 0.9});
}
std::unique_ptr<Optimizer<float>> make_adamw(std::vector<Parameter<float>*> parameters) {
  return std::make_unique<Adam<float>>(
      std::move(parameters),
      AdamOptions{.lr = 0.1, .weight_decay = 0.01, .amsgrad = true, .decoupled = true});
}

// The parameters of one rank.
struct Model {
  Model() {
    for (const std::int64_t count : kCounts) {
      const std::string name = "w" + std::to_string(parameters.size());
      parameters.push_back({name, Tensor<float>(cpu, {count}), Tensor<float>(cpu, {count}), true});
      std::iota(parameters.back().value.data(), parameters.back().value.data() + count, 1.0f);
    }
  }
  std::vector<Parameter<float>*> pointers() {
    std::vector<Parameter<float>*> result;
    for (Parameter<float>& parameter : parameters) result.push_back(&parameter);
    return result;
  }
  // Gradients that depend on the step and the values, so that a wrong bit spreads; the third
  // parameter has one in odd steps only.
  void step(Optimizer<float>& optimizer, int number) {
    for (Parameter<float>& parameter : parameters) {
      for (std::size_t i = 0; i < parameter.value.span().size(); ++i) {
        parameter.gradient.span()[i] =
            parameter.value.span()[i] / 3 - 0.1f * static_cast<float>(number);
      }
    }
    parameters[2].has_gradient = number % 2 == 1;
    optimizer.step();
  }

  Cpu<float> cpu;
  std::vector<Parameter<float>> parameters;
};

constexpr int kSteps = 5;

std::uint64_t unsharded_digest(Make make, int steps = kSteps) {
  Model model;
  const auto optimizer = make(model.pointers());
  for (int step = 1; step <= steps; ++step) model.step(*optimizer, step);
  return state_digest(*optimizer);
}

class ZeroWorlds : public testing::TestWithParam<std::string> {
 protected:
  void run(int world_size, const std::function<void(RankContext&)>& body) {
    make_backend(GetParam())->run_world({.world_size = world_size, .seed = 1}, body);
  }
};

TEST_P(ZeroWorlds, ShardedStateGivesTheBitsOfTheWholeOne) {
  for (const Make make : {make_sgd, make_adamw}) {
    const std::uint64_t expected = unsharded_digest(make);
    for (const int world_size : {1, 2, 3, 4}) {
      for (const int keeper : {0, world_size - 1}) {
        run(world_size, [&](RankContext& rank) {
          Model model;
          ZeroOptimizer<float> optimizer(make(model.pointers()), rank.group);
          for (int step = 1; step <= kSteps; ++step) {
            model.step(optimizer, step);
            if (step == 2) optimizer.consolidate(world_size - 1);  // and on with shares
          }
          optimizer.consolidate(keeper);
          if (rank.group.rank() != keeper) return;
          EXPECT_EQ(state_digest(optimizer), expected);
        });
      }
    }
  }
}

// P48, P49: tensors are never cut, so a state of one world size is one of any.
TEST_P(ZeroWorlds, AStateOfOneWorldSizeGoesOnAtAnother) {
  for (const Make make : {make_sgd, make_adamw}) {
    const std::uint64_t expected = unsharded_digest(make, 3 * kSteps);
    std::vector<std::byte> saved;
    int done = 0;
    for (const int world_size : {4, 2, 3}) {
      std::vector<std::byte> next;
      run(world_size, [&](RankContext& rank) {
        Model model;
        ZeroOptimizer<float> optimizer(make(model.pointers()), rank.group);
        if (!saved.empty()) restore_state("ckpt", saved, optimizer);
        for (int step = done + 1; step <= done + kSteps; ++step) model.step(optimizer, step);
        optimizer.consolidate(0);
        if (rank.group.rank() != 0) return;
        next = encode_state({.step = done + kSteps}, optimizer);
        if (done < 2 * kSteps) return;
        EXPECT_EQ(state_digest(optimizer), expected);
      });
      saved = next;
      done += kSteps;
    }
    ASSERT_EQ(done, 3 * kSteps);
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, ZeroWorlds, testing::ValuesIn(world_backends()),
                         [](const auto& info) { return info.param; });

TEST(ZeroOptimizer, ARankKeepsTheStateOfItsShareAlone) {
  make_backend("sim")->run_world({.world_size = 3}, [&](RankContext& rank) {
    Model model;
    auto inner = make_sgd(model.pointers());
    const Optimizer<float>& state_of = *inner;
    ZeroOptimizer<float> optimizer(std::move(inner), rank.group);
    const auto elements = [&] {
      std::int64_t count = 0;
      for (const ParameterState<float>& state : state_of.state()) {
        for (const Tensor<float>& tensor : state.tensors) count += tensor.count();
      }
      return count;
    };
    const std::int64_t share[] = {12, 11, 11};
    model.step(optimizer, 1);
    const int me = rank.group.rank();
    EXPECT_EQ(elements(), share[me]);
    optimizer.consolidate(1);
    EXPECT_EQ(elements(), me == 1 ? 34 : share[me]);
    model.step(optimizer, 3);
    EXPECT_EQ(elements(), share[me]);
  });
}

TEST(ZeroOptimizer, AnIncompleteStateIsNotToBeHad) {
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2}, [&](RankContext& rank) {
    Model model;
    ZeroOptimizer<float> optimizer(make_sgd(model.pointers()), rank.group);
    EXPECT_NO_THROW(optimizer.state());  // there is none yet
    model.step(optimizer, 1);
    optimizer.consolidate(0);
    try {
      encode_state({}, optimizer);
    } catch (const ConfigError& error) {
      texts[rank.group.rank()] = error.what();
    }
  });
  EXPECT_EQ(texts, (std::map<int, std::string>{
                       {1,
                        "rank 1/2 [sim] ZeroOptimizer: this rank keeps the state of its own "
                        "parameters only; call consolidate(1) on all ranks first"}}));
}

// P47: a save on rank 0 only that gathers.
TEST(ZeroOptimizer, ToConsolidateOnOneRankAloneIsNamed) {
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2}, [&](RankContext& rank) {
    Model model;
    ZeroOptimizer<float> optimizer(make_sgd(model.pointers()), rank.group);
    model.step(optimizer, 1);
    try {
      if (rank.group.rank() == 0) optimizer.consolidate(0);
      rank.group.barrier()->wait();
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
      texts[rank.group.rank()] = error.what();
    }
  });
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[1].find("optimizer state"), std::string::npos) << texts[1];
}

}  // namespace
}  // namespace ddproof
