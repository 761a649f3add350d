// What ranks compute on: --device and --math, for the subcommands that train or move data.
#pragma once

#include <memory>
#include <string>

#include "backends/api/backend.h"
#include "cli/arguments.h"
#include "reference/compute/device.h"

namespace ddproof {

struct DeviceFlags {
  std::string device;  // empty: CUDA where the backend sends device memory, else the CPU
  std::string math;    // of CUDA; empty: fixed-order
};

// Adds --device and --math.
void declare_device_flags(Arguments& arguments, DeviceFlags& flags);

// The flags as they were given, each after a space: for a line that repeats a run.
std::string as_words(const DeviceFlags& flags);

// Throws ConfigError when --math is given for the CPU, and when ranks on CUDA would have to send
// device memory through a backend that takes host memory alone. `talks`: there is a group.
void require_device_fits(const DeviceFlags& flags, const Backend& backend, bool talks);

// For a rank, in its task, once it has joined. `index`: of the CUDA device, as the backend `nccl`
// chooses it: LOCAL_RANK, or the rank where all are in one process. Throws ResourceError when there
// is none.
std::unique_ptr<Device<float>> make_device(const DeviceFlags& flags, const Backend& backend,
                                           int index);

}  // namespace ddproof
