// How parameters are updated: the flags of `ddproof train` for the optimizer, clipping and the
// learning rate.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "reference/train/train.h"

namespace ddproof {

// Of more than one optimizer or schedule; the others are in TrainOptions.
struct OptimizerFlags {
  std::string optimizer = "sgd";
  double lr = 0.05;
  double weight_decay = 0;
  SgdOptions sgd{.momentum = 0.9};
  AdamOptions adam;
  std::string schedule = "constant";
  std::string milestones;  // "30,60"
};

// Adds them. `flags` and `train` outlive the parsing.
void declare_optimizer_flags(Arguments& arguments, OptimizerFlags& flags, TrainOptions& train);

// Puts them together, after arguments.parse(). Throws ConfigError for a flag that the optimizer or
// the schedule does not have, for one that it lacks, and for milestones that are no numbers.
void apply_optimizer_flags(const Arguments& arguments, const OptimizerFlags& flags,
                           TrainOptions& train);

}  // namespace ddproof
