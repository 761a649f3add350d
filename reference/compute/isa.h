// The instruction sets that Cpu's kernels are compiled for. All give the same bits.
#pragma once

#include <string_view>
#include <vector>

namespace ddproof {

enum class Isa {
  kPortable,  // plain C++; fused multiply-adds are calls where the target has no instruction
  kAvx2,      // AVX2 and FMA3
  kAvx512,    // AVX-512F
};

// "portable", "avx2", "avx512".
std::string_view to_string(Isa isa);

// What this processor and this build can run, slowest first; never empty.
std::vector<Isa> supported_isas();

// The last of supported_isas().
Isa best_isa();

}  // namespace ddproof
