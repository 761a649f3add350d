#include "reference/compute/cpu.h"

#include "reference/compute/cpu_generic.h"

namespace ddproof {

template class Cpu<float>;
template class Cpu<double>;

}  // namespace ddproof
