// Kernels, for a device.
#include "reference/compute/cuda/fast_cuda_definitions.h"

namespace ddproof {

template class FastCuda<float>;
template class FastCuda<double>;

}  // namespace ddproof
