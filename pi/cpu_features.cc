#include "pi/cpu_features.h"

namespace nvpi {

// The builtin reports an AVX feature only if the operating system saves its registers (XGETBV). Not
// asked for: GFNI. Zen 3 has VPCLMULQDQ without it.

bool cpu_has_pclmul() noexcept {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3") &&
         __builtin_cpu_supports("sse4.1");
}

bool cpu_has_vpclmul256() noexcept {
  return cpu_has_pclmul() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

bool cpu_has_vpclmul512() noexcept {
  return cpu_has_vpclmul256() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

}  // namespace nvpi
