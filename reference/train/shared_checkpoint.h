// Checkpoints of a group: rank 0 alone reads and writes, and every rank gets the outcome, so that
// private disks, slow file systems and failures look the same on all ranks.
#pragma once

#include <optional>
#include <span>

#include "backends/api/process_group.h"
#include "reference/checkpoint/checkpoint_directory.h"

namespace ddproof {

// Whether rank 0's directory has a checkpoint, good or not, on every rank. A collective call.
bool exists_shared(const CheckpointDirectory& directory, ProcessGroup* group);

// What rank 0 loads, on every rank; empty when its directory has no checkpoint. `group` may be
// null: then this process loads for itself. A collective call.
// Throws the same DataError on all ranks when rank 0 finds no usable checkpoint.
std::optional<LoadedCheckpoint> load_shared(const CheckpointDirectory& directory,
                                            ProcessGroup* group);

// Returns on every rank when rank 0 may write to its directory. A collective call.
// Throws the same DataError on all ranks when it may not.
void require_writable_shared(CheckpointDirectory& directory, ProcessGroup* group);

// Rank 0 saves its state; the others pass an empty one. Returns on every rank when it is saved.
// A collective call. Throws the same DataError on all ranks when saving failed.
void save_shared(CheckpointDirectory& directory, std::span<const std::byte> state,
                 ProcessGroup* group);

}  // namespace ddproof
