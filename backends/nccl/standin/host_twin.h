// Kernels of a CUDA device, run on the host: what stands for `kernel<<<...>>>()`.
//
// The same source is compiled twice: by nvcc into kernels, and by a host compiler into twins that
// are launched here. A twin says what memory it reads and writes, so that the stand-in checks it as
// it checks copies: memory that is freed, another device's, out of bounds, or was never written.
// Threads: those of one simulation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ddproof::standin {

struct Operand {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool is_read = false;
  bool is_written = false;
};

// Runs `body` in the stream's order, without waiting. Complaints have the name `kernel`. Failures
// as cudaLaunchKernel, under which name it can be scripted.
cudaError_t launch_twin(const std::string& kernel, std::vector<Operand> operands,
                        std::function<void()> body, cudaStream_t stream);

}  // namespace ddproof::standin
