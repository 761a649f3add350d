// Host twins, for the CPU stand-in.
#include "reference/compute/cuda/cuda_definitions.h"

namespace ddproof {

template class Cuda<float>;
template class Cuda<double>;

}  // namespace ddproof
