// Checkpoints: restored bit for bit; cut, damaged or interrupted anywhere, the old state, the new
// one or a clear error, and never a third.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "reference/checkpoint/checkpoint_directory.h"
#include "reference/checkpoint/training_state.h"
#include "reference/compute/cpu.h"
#include "reference/optim/sgd.h"
#include "tests/support/memory_runtime.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

using Bytes = std::vector<std::byte>;

// Two parameters and their optimizer.
struct Trainer {
  explicit Trainer(std::int64_t width = 3, SgdOptions options = {.lr = 0.1, .momentum = 0.9}) {
    add("layer.weight", {2, width});
    add("layer.bias", {width});
    sgd.emplace(std::vector<Parameter<float>*>{&parameters[0], &parameters[1]}, options);
  }
  void add(const std::string& name, const Shape& shape) {
    parameters.push_back({name, Tensor<float>(cpu, shape), Tensor<float>(cpu, shape), true});
  }
  // Gradients that depend on the step and the values, so that a wrong state shows.
  void step(std::int64_t number) {
    for (Parameter<float>& parameter : parameters) {
      for (std::size_t i = 0; i < parameter.value.span().size(); ++i) {
        parameter.gradient.span()[i] = 0.1f * static_cast<float>(number) +
                                       parameter.value.span()[i] / 3.0f + static_cast<float>(i);
      }
    }
    sgd->step();
  }
  std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> bits;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      for (const float v : parameters[i].value.span()) bits.push_back(std::bit_cast<unsigned>(v));
      for (const Tensor<float>& momentum : sgd->state()[i].tensors) {
        for (const float v : momentum.span()) bits.push_back(std::bit_cast<unsigned>(v));
      }
    }
    return bits;
  }

  Cpu<float> cpu;
  std::vector<Parameter<float>> parameters;
  std::optional<Sgd<float>> sgd;
};

Bytes state_after(std::int64_t steps, std::int64_t width = 3) {
  Trainer trainer(width);
  for (std::int64_t step = 1; step <= steps; ++step) trainer.step(step);
  return encode_state({.step = steps, .epoch = 1, .position = 2 * steps, .seed = 7}, *trainer.sgd);
}

std::string restore_error(Trainer& trainer, Bytes bytes) {
  try {
    restore_state("ckpt", std::move(bytes), *trainer.sgd);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

bool is_good(const Bytes& bytes) {
  try {
    verify_state("ckpt", bytes);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

TEST(TrainingState, ARestoredRunGoesOnBitForBit) {
  Trainer whole;
  Bytes saved;
  const TrainingProgress progress{.step = 6,
                                  .epoch = 3,
                                  .position = 24,
                                  .seed = ~std::uint64_t{0},
                                  .data = "4 samples, \"odd\" ones",
                                  .gradient_order = {1, 0}};
  for (std::int64_t step = 1; step <= 10; ++step) {
    whole.step(step);
    if (step == 6) saved = encode_state(progress, *whole.sgd);
  }
  Trainer resumed;
  EXPECT_EQ(restore_state("ckpt", saved, *resumed.sgd), progress);
  // maxdiffusion#484: `step` counts the updates done, so the next one is 7.
  for (std::int64_t step = progress.step + 1; step <= 10; ++step) resumed.step(step);
  EXPECT_EQ(resumed.bits(), whole.bits());
}

TEST(TrainingState, AnOrderThatIsNotTheModelsIsRefused) {
  Trainer trainer;
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0}, {0, 0}, {1, 2}, {0, 1, 2}}) {
    const std::string error =
        restore_error(trainer, encode_state({.gradient_order = order}, *trainer.sgd));
    EXPECT_TRUE(error.starts_with("ckpt: metadata ddproof.gradient_order is '0") ||
                error.starts_with("ckpt: metadata ddproof.gradient_order is '1,2'"))
        << error;
    EXPECT_TRUE(error.ends_with("expected each of 0 to 1 once")) << error;
  }
}

TEST(TrainingState, SpecialValuesKeepTheirBits) {
  Trainer trainer;
  const std::uint32_t patterns[] = {0x7fc12345u, 0x80000000u, 0x00000001u, 0xff800000u};
  for (std::size_t i = 0; i < 4; ++i) {
    trainer.parameters[0].value.span()[i] = std::bit_cast<float>(patterns[i]);
  }
  Trainer restored;
  restore_state("ckpt", encode_state({}, *trainer.sgd), *restored.sgd);
  EXPECT_EQ(restored.bits(), trainer.bits());
}

TEST(TrainingState, BeforeTheFirstStepThereIsNoMomentum) {
  Trainer fresh;
  Trainer used;
  used.step(1);
  restore_state("ckpt", encode_state({}, *fresh.sgd), *used.sgd);
  EXPECT_TRUE(used.sgd->state()[0].tensors.empty());
}

TEST(TrainingState, CutAtEveryByteItIsRefused) {
  const Bytes whole = state_after(3);
  ASSERT_TRUE(is_good(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(is_good(Bytes(whole.begin(), whole.begin() + size))) << size;
  }
}

TEST(TrainingState, AnyBitFlippedIsRefused) {
  const Bytes whole = state_after(3);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes changed = whole;
    changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(is_good(changed)) << "bit " << bit;
  }
}

TEST(TrainingState, BytesAddedAreRefused) {
  Bytes longer = state_after(3);
  longer.push_back(std::byte{0});
  EXPECT_FALSE(is_good(longer));
}

TEST(TrainingState, AnotherModelsStateChangesNothing) {
  Trainer trainer;
  trainer.step(1);
  const auto before = trainer.bits();
  EXPECT_EQ(restore_error(trainer, state_after(2, 4)),
            "ckpt: tensor layer.weight is F32 [2, 4], expected F32 [2, 3] as in the model");
  Trainer other;
  other.parameters[1].name = "layer.offset";
  EXPECT_EQ(restore_error(other, state_after(2)),
            "ckpt: no tensor layer.offset, expected every parameter of the model");
  Trainer larger;
  larger.add("extra", {1});
  larger.sgd.emplace(std::vector<Parameter<float>*>{&larger.parameters[0], &larger.parameters[1],
                                                    &larger.parameters[2]},
                     SgdOptions{});
  EXPECT_EQ(restore_error(trainer, encode_state({}, *larger.sgd)),
            "ckpt: tensor extra is not in the model");
  EXPECT_EQ(trainer.bits(), before);
}

TEST(TrainingState, AnotherProgramsFileIsRefusedByName) {
  const Bytes foreign = encode_safetensors({{"format", "pt"}}, {});
  Trainer trainer;
  EXPECT_EQ(restore_error(trainer, foreign),
            "ckpt: no metadata ddproof.xxh3; expected a ddproof checkpoint");
}

TEST(TrainingState, TwoParametersOfOneNameCannotBeSaved) {
  Trainer trainer;
  trainer.parameters[1].name = trainer.parameters[0].name;
  EXPECT_THROW(encode_state({}, *trainer.sgd), ConfigError);
}

// Files of before, and their readers, know no other form.
TEST(TrainingState, FilesOfSgdStayWhatTheyWere) {
  EXPECT_EQ(digest_of(state_after(3)), 0x4a999e2273c4f81eu);
}

// Keeps two tensors and a count.
class Averages final : public Optimizer<float> {
 public:
  explicit Averages(std::vector<Parameter<float>*> parameters)
      : Optimizer<float>("averages", std::move(parameters)) {}
  std::string_view name() const override { return "averages"; }
  void update(std::size_t i) override {
    ParameterState<float>& state = state_with_tensors(i);
    ++state.updates;
    state.tensors[0].span()[0] = 3;
    state.tensors[1].span()[0] = 4;
  }
  double learning_rate() const override { return 0; }
  void set_learning_rate(double) override {}
  StateLayout state_layout() const override { return {{"first", "second"}, true}; }
};

TEST(TrainingState, HoldsWhatTheLayoutOfTheOptimizerNames) {
  Trainer trainer;
  Averages optimizer({&trainer.parameters[0], &trainer.parameters[1]});
  optimizer.update(1);
  optimizer.update(1);
  const Bytes bytes = encode_state({}, optimizer);
  const Safetensors file = Safetensors::decode("ckpt", bytes);
  EXPECT_EQ(file.find("optimizer.step.layer.weight"), nullptr);
  EXPECT_EQ(file.find("optimizer.step.layer.bias")->dtype, "I64");
  Averages restored({&trainer.parameters[0], &trainer.parameters[1]});
  restore_state("ckpt", bytes, restored);
  EXPECT_TRUE(restored.state()[0].tensors.empty());
  EXPECT_EQ(restored.state()[0].updates, 0);
  EXPECT_EQ(restored.state()[1].tensors[1].span()[0], 4);
  EXPECT_EQ(restored.state()[1].updates, 2);
  EXPECT_EQ(restore_error(trainer, bytes),
            "ckpt: it was made with the optimizer averages, this run has sgd; resume with the same "
            "optimizer");
}

// A file of the optimizer "averages" whose state of one parameter is `tensors`.
Bytes state_of_averages(const Trainer& trainer, std::vector<internal::NamedTensor> tensors) {
  for (const Parameter<float>& parameter : trainer.parameters) {
    tensors.push_back(internal::to_host(parameter.name, parameter.value));
  }
  return internal::encode_state({}, "averages", tensors);
}

TEST(TrainingState, APartOfAnOptimizersStateIsRefused) {
  Trainer trainer;
  Averages optimizer({&trainer.parameters[0], &trainer.parameters[1]});
  const auto error = [&](std::vector<internal::NamedTensor> tensors) -> std::string {
    try {
      restore_state("ckpt", state_of_averages(trainer, std::move(tensors)), optimizer);
    } catch (const DataError& failure) {
      return failure.what();
    }
    return "";
  };
  const Tensor<float>& value = trainer.parameters[1].value;
  const auto first = internal::to_host("optimizer.first.layer.bias", value);
  const auto second = internal::to_host("optimizer.second.layer.bias", value);
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({first, second, internal::encode_updates("layer.bias", 1)}), "");
  EXPECT_EQ(error({second, internal::encode_updates("layer.bias", 1)}),
            "ckpt: no tensor optimizer.first.layer.bias, but others of the optimizer's state");
  EXPECT_EQ(error({first, second}),
            "ckpt: no tensor optimizer.step.layer.bias, but others of the optimizer's state");
  EXPECT_EQ(error({internal::encode_updates("layer.bias", 1)}),
            "ckpt: no tensor optimizer.second.layer.bias, but others of the optimizer's state");
  EXPECT_EQ(error({first, second, internal::encode_updates("layer.bias", 0)}),
            "ckpt: tensor optimizer.step.layer.bias is 0, expected at least 1");
}

struct Directory {
  MemoryRuntime runtime;
  CheckpointDirectory checkpoints{runtime, "run"};
};

TEST(CheckpointDirectory, LoadsTheNewest) {
  Directory d;
  EXPECT_FALSE(d.checkpoints.exists());
  d.checkpoints.save(state_after(1));
  d.checkpoints.save(state_after(2));
  EXPECT_TRUE(d.checkpoints.exists());
  const LoadedCheckpoint loaded = d.checkpoints.load();
  EXPECT_EQ(loaded.bytes, state_after(2));
  EXPECT_EQ(loaded.path, "run/checkpoint.safetensors");
  EXPECT_EQ(loaded.warning, "");
}

TEST(CheckpointDirectory, KeepsThePreviousOneAndNothingElse) {
  Directory d;
  for (int steps = 1; steps <= 4; ++steps) d.checkpoints.save(state_after(steps));
  EXPECT_EQ(d.runtime.files().paths(), (std::set<std::string>{"run/checkpoint.previous.safetensors",
                                                              "run/checkpoint.safetensors"}));
  EXPECT_EQ(d.runtime.files().bytes(d.checkpoints.previous_path()), state_after(3));
}

TEST(CheckpointDirectory, NothingToLoadIsAnError) {
  Directory d;
  try {
    d.checkpoints.load();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "no good checkpoint in run: run/checkpoint.safetensors: open: no such file; "
                 "run/checkpoint.previous.safetensors: open: no such file");
  }
}

TEST(CheckpointDirectory, ACutNewestFileFallsBackWithAWarning) {
  const Bytes old_state = state_after(1, 300);
  const Bytes new_state = state_after(2, 300);
  for (std::size_t size = 0; size < new_state.size(); size += 100) {
    Directory d;
    d.checkpoints.save(old_state);
    d.checkpoints.save(new_state);
    d.runtime.files().bytes(d.checkpoints.newest_path()).resize(size);
    const LoadedCheckpoint loaded = d.checkpoints.load();
    EXPECT_EQ(loaded.bytes, old_state) << size;
    EXPECT_TRUE(loaded.warning.starts_with("run/checkpoint.safetensors: byte ")) << loaded.warning;
    EXPECT_TRUE(loaded.warning.ends_with("; going on from run/checkpoint.previous.safetensors"));
  }
}

TEST(CheckpointDirectory, ADamagedFileWithoutAPreviousOneIsAnError) {
  Directory d;
  d.checkpoints.save(state_after(1));
  d.runtime.files().bytes(d.checkpoints.newest_path())[500] ^= std::byte{4};
  EXPECT_THROW(d.checkpoints.load(), DataError);
}

TEST(CheckpointDirectory, ADamagedFileNeverPushesOutAGoodOne) {
  Directory d;
  d.checkpoints.save(state_after(1));
  d.checkpoints.save(state_after(2));
  d.runtime.files().bytes(d.checkpoints.newest_path()).resize(10);
  d.checkpoints.save(state_after(3));
  EXPECT_EQ(d.checkpoints.load().bytes, state_after(3));
  EXPECT_EQ(d.runtime.files().bytes(d.checkpoints.previous_path()), state_after(1));
}

// The process dies in every changing call of a save, after zero, one and two good saves.
TEST(CheckpointDirectory, DyingAnywhereInASaveLeavesTheOldStateOrTheNew) {
  for (int good_saves = 0; good_saves <= 2; ++good_saves) {
    bool completed = false;
    for (int calls = 0; !completed; ++calls) {
      Directory d;
      for (int steps = 1; steps <= good_saves; ++steps) d.checkpoints.save(state_after(steps));
      d.runtime.files().die_after(calls);
      try {
        d.checkpoints.save(state_after(9));
        completed = !d.runtime.files().died();
      } catch (const DataError&) {
      }
      d.runtime.files().revive();
      if (good_saves == 0 && !completed) {
        if (d.checkpoints.exists()) {
          EXPECT_EQ(d.checkpoints.load().bytes, state_after(9));
        }
        continue;
      }
      const Bytes loaded = d.checkpoints.load().bytes;
      EXPECT_TRUE(loaded == state_after(9) || (!completed && loaded == state_after(good_saves)))
          << "call " << calls << " after " << good_saves << " saves";
      // And the next save works on what was left.
      d.checkpoints.save(state_after(10));
      EXPECT_EQ(d.checkpoints.load().bytes, state_after(10));
    }
  }
}

// A new name is durable only after the bytes are, and the directory's entries last.
TEST(CheckpointDirectory, SyncsTheFileBeforeTheRenamesAndTheDirectoryAfter) {
  Directory d;
  d.checkpoints.save(state_after(1));
  const std::size_t before = d.runtime.files().calls().size();
  d.checkpoints.save(state_after(2));
  std::vector<std::string> calls;
  for (std::string call : d.runtime.files().calls())
    calls.push_back(call.substr(0, call.find(".tmp")));
  EXPECT_EQ(
      std::vector<std::string>(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end()),
      (std::vector<std::string>{
          "mkdir run", "create run/checkpoint.safetensors", "write run/checkpoint.safetensors",
          "fsync run/checkpoint.safetensors", "rename run/checkpoint.safetensors",
          "rename run/checkpoint.safetensors", "fsync run"}));
}

TEST(CheckpointDirectory, AFailedSaveRemovesItsTemporaryFile) {
  Directory d;
  d.checkpoints.save(state_after(1));
  d.runtime.files().fail_once(2);  // the append: mkdir and create went well
  EXPECT_THROW(d.checkpoints.save(state_after(2)), DataError);
  EXPECT_EQ(d.runtime.files().paths(), (std::set<std::string>{"run/checkpoint.safetensors"}));
}

TEST(CheckpointDirectory, ThatMayBeWrittenIsLeftAsItWas) {
  Directory d;
  d.checkpoints.require_writable();
  EXPECT_TRUE(d.runtime.files().paths().empty());
}

TEST(CheckpointDirectory, WhatDeadJobsLeftIsRemovedButNotWhatMayStillBeWritten) {
  Directory d;
  const Duration now = d.runtime.wall_clock();
  const auto left_at = [](Duration begin) {
    return fmt::format("run/checkpoint.safetensors.tmp-{:x}-7", begin.count());
  };
  const std::string stale = left_at(now - CheckpointDirectory::kStaleAge - std::chrono::seconds(1));
  const std::string young = left_at(now - CheckpointDirectory::kStaleAge / 2);
  const std::set<std::string> others{"run/checkpoint.safetensors.tmp-mine", "run/notes.tmp-1-7",
                                     "run/checkpoint.safetensors", young};
  for (const std::string& path : others) d.runtime.files().put(path, {});
  d.runtime.files().put(stale, {});
  d.checkpoints.require_writable();
  EXPECT_EQ(d.runtime.files().paths(), others);
}

TEST(CheckpointDirectory, ThatCannotBeWrittenIsAnError) {
  for (const int call : {0, 1, 2}) {
    Directory d;
    d.runtime.files().die_after(call);
    try {
      d.checkpoints.require_writable();
      ADD_FAILURE() << "no error at call " << call;
    } catch (const DataError& error) {
      EXPECT_TRUE(
          std::string(error.what()).starts_with("no checkpoints can be written to run: run"))
          << error.what();
    }
  }
}

// pytorch#194614: a fixed temporary name lets two jobs write into one file.
TEST(CheckpointDirectory, TwoJobsInOneDirectoryUseTheirOwnTemporaryFiles) {
  Directory d;
  std::set<std::string> names;
  for (int job = 0; job < 2; ++job) {
    d.runtime.files().die_after(2);
    EXPECT_THROW(d.checkpoints.save(state_after(1)), DataError);
    d.runtime.files().revive();
    for (const std::string& path : d.runtime.files().paths()) names.insert(path);
  }
  EXPECT_EQ(names.size(), 2u);
}

// pytorch#84881: a peer that opened the file before it was replaced still reads it whole.
TEST(CheckpointDirectory, AnOpenFileStaysReadableWhileItIsReplaced) {
  Directory d;
  d.checkpoints.save(state_after(1));
  const std::unique_ptr<File> open = d.runtime.files().open(d.checkpoints.newest_path());
  d.checkpoints.save(state_after(2));
  d.checkpoints.save(state_after(3));
  Bytes bytes(open->size());
  open->read_at(0, bytes);
  EXPECT_EQ(bytes, state_after(1));
}

TEST(CheckpointDirectory, WorksOnTheOperatingSystemsFiles) {
  OsRuntime runtime;
  const TemporaryFolder folder;
  CheckpointDirectory checkpoints(runtime, folder.path() + "/new/run");
  checkpoints.save(state_after(1));
  checkpoints.save(state_after(2));
  EXPECT_EQ(checkpoints.load().bytes, state_after(2));
}

}  // namespace
}  // namespace ddproof
