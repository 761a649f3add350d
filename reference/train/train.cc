#include "reference/train/train.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "reference/checkpoint/training_state.h"
#include "reference/compute/cpu.h"
#include "reference/data/augmentation.h"
#include "reference/data/data_loader.h"
#include "reference/ddp/agreement.h"
#include "reference/ddp/coalesced_broadcast.h"
#include "reference/ddp/hooks/compression_hook.h"
#include "reference/model/models.h"
#include "reference/train/evaluate.h"
#include "reference/train/sampler_agreement.h"
#include "reference/train/shared_checkpoint.h"
#include "reference/train/state_digest.h"
#include "reference/train/train_optimizer.h"
#include "reference/train/trainer.h"

namespace ddproof {
namespace {

ImageShape image_shape(const Dataset& dataset) {
  const Shape& shape = dataset.sample_shape();
  if (shape.size() != 3) throw ConfigError("the data set does not hold images");
  return {shape[0], shape[1], shape[2]};
}

// deeplab gives each pixel a class, the others each sample.
void check_labels(const TrainOptions& options, const Dataset& dataset) {
  const Shape& image = dataset.sample_shape();
  const bool by_pixel = options.model == "deeplab";
  if (dataset.label_shape() == (by_pixel ? Shape{image.begin() + 1, image.end()} : Shape{})) return;
  throw ConfigError(fmt::format(
      "the model {} gives a class to each {}, the data set has labels of shape {} for a sample of "
      "shape {}",
      options.model, by_pixel ? "pixel" : "sample", to_string(dataset.label_shape()),
      to_string(image)));
}

void check_data(const TrainOptions& options, const TrainData& data) {
  if (data.train.size() == 0) throw ConfigError("the training set has no samples");
  if (options.augment && !data.train.label_shape().empty()) {
    throw ConfigError("augmentation would move pixels and leave their labels where they were");
  }
  check_labels(options, data.train);
  if (!options.evaluate) return;
  if (data.test == nullptr) throw ConfigError("evaluation needs a test set");
  check_labels(options, *data.test);
  if (data.test->size() == 0) throw ConfigError("the test set has no samples");
  if (data.test->sample_shape() != data.train.sample_shape()) {
    throw ConfigError("the test set's samples have shape " + to_string(data.test->sample_shape()) +
                      ", the training set's " + to_string(data.train.sample_shape()));
  }
}

// In words that differ for other data; what a checkpoint's position counts in.
std::string describe_data(const TrainOptions& options, const Dataset& dataset) {
  return fmt::format("{} samples of shape {} in {} classes (digest {:016x}{})", dataset.size(),
                     to_string(dataset.sample_shape()), dataset.class_count(), dataset.digest(),
                     options.augment ? ", augmented" : "");
}

// What must be equal on all ranks for their steps to pair up and their states to stay equal.
std::vector<Setting> settings(const TrainOptions& options, const TrainData& data) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  std::vector<Setting> all{{"model", options.model},
                           {"sync batch norm", text(options.sync_batch_norm)},
                           {"epochs", text(options.epochs)},
                           {"start epoch", text(options.start_epoch)},
                           {"batch size", text(options.batch_size)},
                           {"accumulate", text(options.accumulate)},
                           {"averaging", to_string(options.averaging)},
                           {"comm hook", options.comm_hook},
                           {"find unused parameters", text(options.find_unused_parameters)},
                           {"max steps", text(options.max_steps)},
                           {"seed", text(options.seed)},
                           {"bucket cap in bytes", text(options.bucket_cap_bytes)},
                           {"saving of checkpoints", text(!options.checkpoint_directory.empty())},
                           {"checkpoint every", text(options.checkpoint_every)},
                           {"resume", text(options.resume)},
                           {"evaluation", text(options.evaluate)},
                           {"training set", describe_data(options, data.train)}};
  std::ranges::move(optimizer_settings(options), std::back_inserter(all));
  return all;
}

// One call of train(): holds the parts that live as long as the run.
class TrainingRun {
 public:
  TrainingRun(const TrainOptions& options, const TrainData& data, ProcessGroup* group,
              Runtime& runtime, TrainObserver* observer, Device<float>* device)
      : options_(options),
        data_(data),
        group_(group),
        runtime_(runtime),
        observer_(observer),
        checkpoints_(runtime, options.checkpoint_directory),
        device_(device != nullptr ? *device : cpu_.emplace()),
        model_(make_model<float>(options.model, image_shape(data.train), data.train.class_count(),
                                 device_, options.seed, options.sync_batch_norm ? group : nullptr)),
        optimizer_(make_optimizer(options, model_->parameters(), group)),
        base_lr_(optimizer_->learning_rate()),
        sampler_({.length = data.train.size(),
                  .replicas = world_size(),
                  .rank = group != nullptr ? group->rank() : 0,
                  .seed = options.seed}) {
    progress_.seed = options.seed;
    progress_.epoch = options.start_epoch;
    progress_.data = describe_data(options, data.train);
    progress_.lr_schedule = describe(options.lr_schedule);
  }

  TrainSummary run() {
    if (group_ != nullptr) {
      require_same_settings(*group_, settings(options_, data_),
                            "start every rank with the same flags and data");
    }
    if (options_.resume) {
      resume();
    } else {
      refuse_to_overwrite();
    }
    if (!options_.checkpoint_directory.empty() && is_work_left()) {
      require_writable_shared(checkpoints_, group_);
    }
    trainer_.emplace(*model_, *optimizer_, group_,
                     DdpOptions{.bucket_cap_bytes = options_.bucket_cap_bytes,
                                .gradient_order = progress_.gradient_order,
                                .find_unused_parameters = options_.find_unused_parameters,
                                .averaging = options_.averaging},
                     clip_options(), data_.train.ignored_label());
    register_comm_hook();
    begin_ = runtime_.now();
    while (is_work_left()) run_epoch();
    summary_.elapsed = runtime_.now() - begin_;
    if (saved_step_ != progress_.step) save();
    return summarize();
  }

 private:
  bool is_work_left() const { return progress_.epoch < options_.epochs && !reached_max_steps(); }
  int world_size() const { return group_ != nullptr ? group_->size() : 1; }

  bool reached_max_steps() const {
    return options_.max_steps > 0 && progress_.step >= options_.max_steps;
  }

  void register_comm_hook() {
    if (options_.comm_hook == "fp16") {
      trainer_->ddp()->register_comm_hook(std::make_unique<Float16Compression>());
    } else if (options_.comm_hook == "bf16") {
      trainer_->ddp()->register_comm_hook(std::make_unique<BFloat16Compression>());
    }
  }

  void refuse_to_overwrite() const {
    if (options_.checkpoint_directory.empty() || !exists_shared(checkpoints_, group_)) return;
    throw ConfigError(options_.checkpoint_directory +
                      " holds a checkpoint already; go on from it with --resume, or give another "
                      "--checkpoint-dir");
  }

  void resume() {
    const std::optional<LoadedCheckpoint> loaded = load_shared(checkpoints_, group_);
    if (!loaded) return;
    if (!loaded->warning.empty()) warn(loaded->warning);
    progress_ = restore_state(loaded->path, loaded->bytes, *optimizer_, model_->buffers());
    if (progress_.seed != options_.seed) {
      throw ConfigError(loaded->path + " was made with seed " + std::to_string(progress_.seed) +
                        ", this run has seed " + std::to_string(options_.seed) +
                        "; resume with the same seed");
    }
    if (const std::string data = describe_data(options_, data_.train); progress_.data != data) {
      throw ConfigError(loaded->path + " was made with " + progress_.data + ", this run has " +
                        data + "; resume with the same data");
    }
    if (const std::string schedule = describe(options_.lr_schedule);
        progress_.lr_schedule != schedule) {
      throw ConfigError(loaded->path + " was made with the learning-rate schedule '" +
                        progress_.lr_schedule + "', this run has '" + schedule +
                        "'; resume with the same schedule");
    }
    saved_step_ = progress_.step;
  }

  void run_epoch() {
    sampler_.set_epoch(progress_.epoch);
    if (group_ != nullptr) require_same_sampler(*group_, sampler_);
    DataLoader<float> loader(
        runtime_, device_, data_.train, sampler_.indices(progress_.position),
        {.batch_size = options_.batch_size, .transform = transform(), .workers = options_.workers});
    std::int64_t batches = loader.batch_count();
    steps_of_run_ = last_step(batches);
    while (batches > 0 && !reached_max_steps()) {
      const std::int64_t parts = std::min(options_.accumulate, batches);
      update(loader, parts);
      batches -= parts;
    }
    if (progress_.position == 0 && options_.checkpoint_every == 0) save();
  }

  SampleTransform transform() const {
    if (!options_.augment) return {};
    return random_crop_and_flip(data_.train.sample_shape(), kCropPadding, options_.seed,
                                progress_.epoch);
  }

  // Requires: the loader has so many batches.
  void update(DataLoader<float>& loader, std::int64_t parts) {
    optimizer_->set_learning_rate(learning_rate_at(options_.lr_schedule, base_lr_, progress_.step));
    MetricSums mine;
    std::int64_t samples = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Batch<float>& batch = *loader.next();
      mine += trainer_->step(batch.input, batch.labels, {part, parts});
      samples += batch.size();
    }
    finish_step(mine, samples * world_size());
  }

  // `samples`: that all ranks together have drawn for it.
  void finish_step(const MetricSums& mine, std::int64_t samples) {
    const MetricSums metrics = group_ != nullptr ? sum_over_ranks(*group_, mine) : mine;
    if (!std::isfinite(metrics.loss_sum)) refuse_loss(mine, metrics);
    if (!std::isfinite(trainer_->gradient_norm())) refuse_gradients();
    const std::int64_t epoch = progress_.epoch;
    advance(samples);
    summary_.samples += metrics.samples;
    summary_.last_step = metrics;
    if (observer_ != nullptr) {
      observer_->on_step({progress_.step, steps_of_run_, epoch, metrics, runtime_.now() - begin_});
    }
    if (options_.checkpoint_every > 0 && progress_.step % options_.checkpoint_every == 0) save();
  }

  // On every rank, since all have the same sum. The rank named is the lowest one whose own loss is
  // not finite.
  [[noreturn]] void refuse_loss(const MetricSums& mine, const MetricSums& all) const {
    std::string text = say_loss(fmt::format("step {}: the loss", progress_.step + 1), all);
    if (group_ != nullptr) {
      std::array<std::int64_t, 1> rank{std::isfinite(mine.loss_sum) ? group_->size()
                                                                    : group_->rank()};
      group_->all_reduce(Buffer::of(rank), ReduceOp::kMin, {.label = "bad loss"})->wait();
      text += fmt::format(", from rank {}", rank[0]);
    }
    throw ConfigError(text + loss_advice());
  }

  // On every rank, since all have the same gradients. Only now, so that a loss is named first.
  [[noreturn]] void refuse_gradients() const {
    throw ConfigError(fmt::format("{}step {}: the norm of the gradients is {}{}", who(),
                                  progress_.step + 1, std::fabs(trainer_->gradient_norm()),
                                  loss_advice()));
  }

  std::string who() const { return group_ != nullptr ? group_->who() + " " : ""; }

  std::string say_loss(const std::string& which, const MetricSums& sums) const {
    const double loss =
        std::isnan(sums.loss()) ? std::fabs(sums.loss()) : sums.loss();  // no "-nan"
    return fmt::format("{}{} is {}", who(), which, loss);
  }

  std::string loss_advice() const {
    return fmt::format("; lower the learning rate, now {}, or look at the data",
                       optimizer_->learning_rate());
  }

  // The progress always names the next sample: after the last one of an epoch, the next epoch's.
  void advance(std::int64_t samples) {
    ++progress_.step;
    progress_.position += samples;
    if (sampler_.remaining(progress_.position) > 0) return;
    ++progress_.epoch;
    progress_.position = 0;
  }

  // The number of this run's last step, when this epoch still has `batches`.
  std::int64_t last_step(std::int64_t batches) const {
    const auto updates = [&](std::int64_t of_batches) {
      return (of_batches + options_.accumulate - 1) / options_.accumulate;
    };
    const std::int64_t per_epoch =
        updates((sampler_.size() + options_.batch_size - 1) / options_.batch_size);
    const std::int64_t all =
        progress_.step + updates(batches) + (options_.epochs - progress_.epoch - 1) * per_epoch;
    return options_.max_steps > 0 ? std::min(all, options_.max_steps) : all;
  }

  void save() {
    if (options_.checkpoint_directory.empty()) return;
    if (trainer_->ddp() != nullptr) {
      progress_.gradient_order = trainer_->ddp()->reducer().gradient_order();
    }
    optimizer_->consolidate(0);
    const bool writes = group_ == nullptr || group_->rank() == 0;
    const auto state =
        writes ? encode_state(progress_, *optimizer_, model_->buffers()) : std::vector<std::byte>{};
    save_shared(checkpoints_, state, group_);
    saved_step_ = progress_.step;
  }

  // After a step each rank has followed its own batches: rank 0's are the model's, as in the
  // checkpoint and before the next step.
  void share_buffers() {
    if (group_ == nullptr) return;
    std::vector<Tensor<float>*> values;
    for (ModuleBuffer<float>* buffer : model_->buffers()) values.push_back(&buffer->value);
    broadcast_coalesced(*group_, values, 0, "buffers of the trained model");
  }

  TrainSummary summarize() {
    summary_.steps = progress_.step;
    share_buffers();
    if (options_.evaluate) {
      summary_.evaluation =
          evaluate(*model_, device_, *data_.test, options_.batch_size, group_, runtime_);
      if (!std::isfinite(summary_.evaluation.loss_sum)) {
        throw ConfigError(say_loss("the test loss", summary_.evaluation) + loss_advice());
      }
    }
    summary_.parameter_digest = parameter_digest(optimizer_->parameters());
    summary_.state_digest = whole_state_digest();
    if (group_ != nullptr) {
      summary_.ranks_agree = all_ranks_have(
          *group_, fmt::format("{} {}", summary_.state_digest, summary_.parameter_digest),
          "state digest");
    }
    return summary_;
  }

  // Rank 0's, where the state is divided: it alone has all of it.
  std::uint64_t whole_state_digest() {
    const auto own = [&] { return state_digest(*optimizer_, model_->buffers()); };
    if (!options_.zero || group_ == nullptr) return own();
    optimizer_->consolidate(0);
    std::array<std::uint64_t, 1> digest{group_->rank() == 0 ? own() : 0};
    group_->broadcast(Buffer::of(digest), 0, {.label = "state digest"})->wait();
    return digest[0];
  }

  std::optional<ClipOptions> clip_options() const {
    if (options_.clip_grad_norm == 0) return std::nullopt;
    return ClipOptions{.max_norm = options_.clip_grad_norm};
  }

  void warn(const std::string& text) {
    if (observer_ != nullptr) observer_->on_warning(text);
  }

  const TrainOptions& options_;
  const TrainData& data_;
  ProcessGroup* group_;
  Runtime& runtime_;
  TrainObserver* observer_;
  CheckpointDirectory checkpoints_;
  std::optional<Cpu<float>> cpu_;  // when the caller has no device
  Device<float>& device_;
  std::unique_ptr<Module<float>> model_;
  std::unique_ptr<Optimizer<float>> optimizer_;
  double base_lr_;  // what the schedule starts from
  DistributedSampler sampler_;
  std::optional<Trainer<float>> trainer_;  // once it is known where the run begins
  TrainingProgress progress_;
  std::int64_t saved_step_ = -1;  // -1: nothing saved or loaded
  std::int64_t steps_of_run_ = 0;
  TimePoint begin_{0};
  TrainSummary summary_;
};

}  // namespace

void validate(const TrainOptions& options) {
  const auto refuse = [](const std::string& text) { throw ConfigError(text); };
  if (options.start_epoch < 0 || options.start_epoch >= std::max<std::int64_t>(1, options.epochs)) {
    refuse("--start-epoch is " + std::to_string(options.start_epoch) +
           ", expected 0 or more and below --epochs, " + std::to_string(options.epochs));
  }
  if (options.workers < 0) refuse("--workers is negative; 0 reads each batch when it is needed");
  if (options.epochs < 1) refuse("--epochs is " + std::to_string(options.epochs) + ", at least 1");
  if (options.max_steps < 0) refuse("--max-steps is negative; 0 means no limit");
  if (options.accumulate < 1) {
    refuse("--accumulate is " + std::to_string(options.accumulate) + ", at least 1");
  }
  if (options.comm_hook != "allreduce" && options.comm_hook != "fp16" &&
      options.comm_hook != "bf16") {
    refuse("--comm-hook is " + options.comm_hook + ", expected allreduce, fp16 or bf16");
  }
  if (options.comm_hook != "allreduce" && options.averaging != Averaging::kWorld) {
    refuse("--comm-hook " + options.comm_hook + " averages by itself; leave --averaging world");
  }
  if (options.checkpoint_every < 0) refuse("--checkpoint-every is negative; 0 means each epoch");
  if (options.checkpoint_directory.empty()) {
    if (options.resume) refuse("--resume needs --checkpoint-dir");
    if (options.checkpoint_every > 0) refuse("--checkpoint-every needs --checkpoint-dir");
  }
  if (options.adam) validate(*options.adam);
  if (!options.adam) validate(options.sgd);
  validate(options.lr_schedule);
  if (!(options.clip_grad_norm >= 0) || std::isinf(options.clip_grad_norm)) {
    refuse(fmt::format("--clip-grad-norm is {}, a finite number, at least 0; 0 clips nothing",
                       options.clip_grad_norm));
  }
}

TrainSummary train(const TrainOptions& options, const TrainData& data, ProcessGroup* group,
                   Runtime& runtime, TrainObserver* observer, Device<float>* device) {
  validate(options);
  check_data(options, data);
  if (group == nullptr && options.comm_hook != "allreduce") {
    throw ConfigError("--comm-hook " + options.comm_hook +
                      " is for several ranks, and there is one");
  }
  return TrainingRun(options, data, group, runtime, observer, device).run();
}

}  // namespace ddproof
