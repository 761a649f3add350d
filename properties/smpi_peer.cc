// The same work under SimGrid's SMPI, for the benchmark beside it: OPERATION BYTES TIMES.
#include <mpi.h>

#include <cstdlib>
#include <cstring>

#include "properties/payload_memory.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const operation = argv[1];
  const auto count = static_cast<int>(std::atol(argv[2]) / static_cast<long>(sizeof(float)));
  const int times = std::atoi(argv[3]);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static PayloadMemory all;  // of all ranks, which live in this process
  if (all == nullptr) all = make_payload(static_cast<std::size_t>(ranks) * count);
  float* const values = all.get() + static_cast<std::size_t>(rank) * count;
  for (int i = 0; i < times; ++i) {
    if (std::strcmp(operation, "all-reduce") == 0) {
      MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  MPI_Finalize();
}
