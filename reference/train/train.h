// The training loop: epochs of steps over a data set, with checkpoints and evaluation, the same for
// one device and for every rank of a group on any backend.
//
// Invariants: the order of samples is DistributedSampler's; all ranks make the same steps; a run
// that stopped at any checkpoint and resumed at the same world size ends with the same bits as one
// that never stopped.
// Threads: one task at a time per rank; ranks share nothing but the data sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "reference/compute/device.h"
#include "reference/data/dataset.h"
#include "reference/ddp/options.h"
#include "reference/optim/adam.h"
#include "reference/optim/lr_schedule.h"
#include "reference/optim/sgd.h"
#include "reference/train/metrics.h"

namespace ddproof {

struct TrainOptions {
  std::string model = "mlp";
  bool sync_batch_norm = false;  // ranks share the statistics of batch norm
  std::int64_t epochs = 1;
  std::int64_t start_epoch = 0;  // the first one's number, unless a checkpoint says it
  int workers = 1;               // tasks that read two batches ahead each; 0: none
  std::int64_t batch_size = 64;  // of each rank
  // Batches that make one update; at the end of an epoch, as many as are left.
  std::int64_t accumulate = 1;
  Averaging averaging = Averaging::kWorld;  // see trainer.h
  // How gradients travel: "allreduce", or in 16 bits "fp16" or "bf16". For several ranks.
  std::string comm_hook = "allreduce";
  bool find_unused_parameters = false;  // see DdpOptions
  SgdOptions sgd;
  std::optional<AdamOptions> adam;  // instead of SGD
  LrSchedule lr_schedule;           // of the optimizer's rate, one step per update
  double clip_grad_norm = 0;        // 0: gradients are not clipped
  bool zero = false;                // the optimizer's state is divided over the ranks
  std::uint64_t seed = 0;  // of the initial parameters, the order of samples and augmentation
  bool augment = false;    // training images are cropped and mirrored at random (kCropPadding)
  std::int64_t bucket_cap_bytes = kDefaultBucketBytes;
  std::int64_t max_steps = 0;        // in all, over resumed runs too; 0: as many as the epochs have
  bool evaluate = false;             // on the test set, at the end
  std::string checkpoint_directory;  // empty: none are written
  std::int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch and of the run
  bool resume = false;                // from the directory's checkpoint, if there is one
};

// What PyTorch's users give RandomCrop for small images.
inline constexpr int kCropPadding = 4;

struct TrainData {
  const Dataset& train;
  const Dataset* test = nullptr;  // needed for evaluate
};

// One step, as all ranks see it.
struct StepRecord {
  std::int64_t step = 0;   // 1, 2, ...
  std::int64_t steps = 0;  // the last one of this run
  std::int64_t epoch = 0;  // 0, 1, ...
  MetricSums metrics;      // over all ranks
  Duration elapsed{0};     // since the run began, on the Runtime's clock
};

struct TrainSummary {
  std::int64_t steps = 0;    // done, those before a resume included
  MetricSums last_step;      // over all ranks; no samples when there was nothing left to do
  std::int64_t samples = 0;  // in this run, over all ranks
  Duration elapsed{0};       // of the steps of this run
  MetricSums evaluation;     // when asked for
  std::uint64_t parameter_digest = 0;
  std::uint64_t state_digest = 0;  // parameters, the optimizer's state, rank 0's buffers
  bool ranks_agree = true;         // all ranks hold the same state, bit for bit
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepRecord& record) = 0;
  // One line: a checkpoint that was not usable.
  virtual void on_warning(const std::string& text) = 0;
};

// What train() asks of its options alone, at once. Throws ConfigError.
void validate(const TrainOptions& options);

// A collective call when `group` is not null. `observer` may be null. `device` holds the model and
// computes; null: a Cpu of the run's own.
// Throws ConfigError for settings that make no sense (a text each), on all ranks where ranks
// disagree or a new run would overwrite a checkpoint, and on all ranks at the first step whose loss
// is not finite, or whose gradients' norm is not where they are clipped; that step is neither
// observed nor saved. The same for a test loss that is not finite, and for a checkpoint of another
// seed, other data or another learning-rate schedule. DataError for a data set or
// checkpoint that is not usable; CommError.
TrainSummary train(const TrainOptions& options, const TrainData& data, ProcessGroup* group,
                   Runtime& runtime, TrainObserver* observer, Device<float>* device = nullptr);

}  // namespace ddproof
