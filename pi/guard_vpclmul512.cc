// Guards with VPCLMULQDQ on 512-bit registers. Compiled with -mavx512{f,bw,vl} -mpclmul
// -mvpclmulqdq and -mprfchw (see guard_vpclmul256.cc).
#include "pi/cpu_features.h"
#include "pi/guard_pclmul.h"

namespace nvpi {
namespace {

struct Zmm {
  using Register = __m512i;
  static Register load(const void* p) { return _mm512_load_si512(p); }
  static Register repeat(__m128i lane) { return _mm512_broadcast_i32x4(lane); }
  static Register first_lane(__m128i lane) { return _mm512_zextsi128_si512(lane); }
  static __m128i sum_of_lanes(Register v) {
    const __m256i half = _mm512_castsi512_si256(v) ^ _mm512_extracti64x4_epi64(v, 1);
    return _mm256_castsi256_si128(half) ^ _mm256_extracti128_si256(half, 1);
  }
  static Register shuffle(Register v, Register order) { return _mm512_shuffle_epi8(v, order); }
  static Register multiply(Register v, Register factors) {
    return _mm512_clmulepi64_epi128(v, factors, 0x00) ^ _mm512_clmulepi64_epi128(v, factors, 0x11);
  }
};

}  // namespace

constinit const GuardKernel guard_vpclmul512 = {"vpclmul512", cpu_has_vpclmul512,
                                                functions_for<Zmm>};

}  // namespace nvpi
