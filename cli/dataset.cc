#include "cli/dataset.h"

#include "reference/data/cifar10.h"
#include "reference/data/cityscapes.h"
#include "reference/data/idx.h"

namespace ddproof {

void declare_dataset_flags(Arguments& arguments, DatasetFlags& flags) {
  arguments.text("--data", flags.directory, "directory of the data set");
  arguments.choice("--format", flags.format, {"idx", "cifar10", "cityscapes"}, "of the data set");
}

std::unique_ptr<Dataset> read_dataset(const DatasetFlags& flags, FileSystem& files, Split split) {
  if (flags.format == "cityscapes") {
    return std::make_unique<Cityscapes>(files, flags.directory, split);
  }
  if (flags.format == "idx") return read_idx_dataset(files, flags.directory, split);
  return read_cifar10(files, flags.directory, split);
}

}  // namespace ddproof
