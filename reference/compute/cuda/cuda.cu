// Kernels, for a device.
#include "reference/compute/cuda/cuda_definitions.h"

namespace ddproof {

template class Cuda<float>;
template class Cuda<double>;

}  // namespace ddproof
