#include "reference/compute/isa.h"

namespace ddproof {

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kPortable: return "portable";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "unknown";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = {Isa::kPortable};
#ifdef DDPROOF_X86_KERNELS
  // Both builtins also ask the operating system whether it saves the registers.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::kAvx2);
  if (__builtin_cpu_supports("avx512f")) isas.push_back(Isa::kAvx512);
#endif
  return isas;
}

Isa best_isa() { return supported_isas().back(); }

}  // namespace ddproof
