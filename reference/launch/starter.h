// Who started this process, and what its variables are called there (ECOSYSTEM 1.2). The first that
// is found counts:
//
//   ddproof run, torchrun, variables set by hand   RANK, WORLD_SIZE, LOCAL_RANK, or one of them
//   Kubeflow    RANK, WORLD_SIZE and KUBERNETES_PORT without LOCAL_RANK: one rank a pod
//   Slurm       SLURM_PROCID, where srun started it: SLURM_STEP_ID, and no interactive job
//   Open MPI    OMPI_COMM_WORLD_RANK
//   MVAPICH     MV2_COMM_WORLD_RANK
//   PMI         PMI_RANK: MPICH, Intel MPI
//
// Pure functions.
#pragma once

#include <optional>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

struct Starter {
  std::string name;
  // Names of variables.
  std::string rank = "RANK";
  std::string world_size = "WORLD_SIZE";
  std::string local_rank = "LOCAL_RANK";              // empty: it is 0
  std::string local_world_size = "LOCAL_WORLD_SIZE";  // need not be set
  // What holds where MASTER_ADDR and MASTER_PORT are not set; empty: they must be.
  std::string master_addr;
  std::string master_port;
  // How a variable that is missing gets set there.
  std::string advice;

  friend bool operator==(const Starter&, const Starter&) = default;
};

// Nothing: nobody started it as a rank.
std::optional<Starter> find_starter(const Environment& environment);

// In words, when variables look as if ranks were meant that nobody started; otherwise empty.
std::string missed_starter(const Environment& environment);

// The first host of a Slurm list: "node[007-009,12],login" gives "node007". Empty when it is
// none, or of a form that this does not read.
std::string first_slurm_host(const std::string& list);

}  // namespace ddproof
