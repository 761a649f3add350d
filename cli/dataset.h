// The data set that --data and --format name, for the subcommands that read one.
#pragma once

#include <memory>
#include <string>

#include "backends/api/files.h"
#include "cli/arguments.h"
#include "reference/data/dataset.h"

namespace ddproof {

struct DatasetFlags {
  std::string directory;
  std::string format = "idx";
};

// Adds --data and --format.
void declare_dataset_flags(Arguments& arguments, DatasetFlags& flags);

// Throws DataError naming file, offset and expectation.
// Requires: `files` outlives the data set.
std::unique_ptr<Dataset> read_dataset(const DatasetFlags& flags, FileSystem& files, Split split);

}  // namespace ddproof
