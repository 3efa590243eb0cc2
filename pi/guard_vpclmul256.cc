// Guards with VPCLMULQDQ on 256-bit registers. Compiled with -mavx2 -mpclmul -mvpclmulqdq and
// -mprfchw: PREFETCHW is a hint that needs no test of its own, no CPU with AVX2 faults on it.
#include "pi/cpu_features.h"
#include "pi/guard_pclmul.h"

namespace nvpi {
namespace {

struct Ymm {
  using Register = __m256i;
  static Register load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
  static Register repeat(__m128i lane) { return _mm256_broadcastsi128_si256(lane); }
  static Register first_lane(__m128i lane) { return _mm256_zextsi128_si256(lane); }
  static __m128i sum_of_lanes(Register v) {
    return _mm256_castsi256_si128(v) ^ _mm256_extracti128_si256(v, 1);
  }
  static Register shuffle(Register v, Register order) { return _mm256_shuffle_epi8(v, order); }
  static Register multiply(Register v, Register factors) {
    return _mm256_clmulepi64_epi128(v, factors, 0x00) ^ _mm256_clmulepi64_epi128(v, factors, 0x11);
  }
};

}  // namespace

constinit const GuardKernel guard_vpclmul256 = {"vpclmul256", cpu_has_vpclmul256,
                                                functions_for<Ymm>};

}  // namespace nvpi
