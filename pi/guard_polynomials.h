// The generators of the guards and the arithmetic modulo them, on 64 coefficients. Internal to
// guard_pclmul.h, and in an anonymous namespace for the same reason.
//
// A generator of a lower degree is multiplied by a power of x to get to x^64 + ...; its remainders
// are then multiplied likewise. Every constant is computed at compile time.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "pi/bits.h"

namespace nvpi {
namespace {

// Bit i is the coefficient of x^i. A generator is x^64 + such a polynomial.
using Polynomial = std::uint64_t;

constexpr Polynomial power_of_x(unsigned exponent, Polynomial generator) {  // modulo the generator
  Polynomial r = 1;
  for (; exponent > 0; --exponent) r = (r << 1) ^ ((r >> 63) * generator);
  return r;
}

constexpr Polynomial quotient_of_x128(Polynomial generator) {  // without its leading x^64
  Polynomial quotient = 0;
  Polynomial r = generator;
  for (int i = 0; i < 64; ++i) {
    quotient = (quotient << 1) | (r >> 63);
    r = (r << 1) ^ ((r >> 63) * generator);
  }
  return quotient;
}

inline __m128i lane(std::uint64_t low, std::uint64_t high) {
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

inline std::uint64_t low_half(__m128i v) {
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(v));
}

inline std::uint64_t high_half(__m128i v) {
  return static_cast<std::uint64_t>(_mm_extract_epi64(v, 1));
}

// What the two halves of a lane are multiplied by.
struct Factors {
  std::uint64_t low, high;
  __m128i load() const { return lane(low, high); }
};

// The highest coefficient comes first: bit 7 of the first byte. Lanes are polynomials once their
// bytes are reversed.
template <unsigned degree, Polynomial low_coefficients>
struct Forward {
  static constexpr bool reflected = false;
  static constexpr Polynomial generator = low_coefficients << (64 - degree);

  static Polynomial start(std::uint64_t previous) { return previous << (64 - degree); }
  static std::uint64_t finish(Polynomial r) { return r >> (64 - degree); }

  // For a lane that is followed by `bits` more.
  static constexpr Factors factors(unsigned bits) {
    return {power_of_x(bits, generator), power_of_x(bits + 64, generator)};
  }
  // The remainder of what came before is added to the first 64 coefficients of what follows.
  static __m128i leading(Polynomial r) { return lane(0, r); }

  // Of a whole lane: Barrett's reduction, without carries exact.
  static Polynomial remainder(__m128i p) {
    static constexpr Factors k = {quotient_of_x128(generator), generator};
    const __m128i quotient = p ^ _mm_clmulepi64_si128(p, k.load(), 0x01);  // in the high half
    return low_half(p ^ _mm_clmulepi64_si128(quotient, k.load(), 0x11));
  }
  // Remainder after 1 to 8 more bytes, the first of which is the lowest of `word`.
  static Polynomial append(Polynomial r, std::uint64_t word, unsigned size) {
    const Polynomial head = (r ^ __builtin_bswap64(word)) >> (64 - 8 * size);
    return remainder(lane(size == 8 ? 0 : r << 8 * size, head));
  }
};

// The highest coefficient comes first: bit 0 of the first byte. So the bits of every lane and
// constant are in reverse, which moves a product of two by one place: it comes out times x.
template <unsigned degree, Polynomial low_coefficients>
struct Reflected {
  static constexpr bool reflected = true;
  static constexpr Polynomial generator = low_coefficients << (64 - degree);
  static constexpr std::uint64_t inverted = ~0ull >> (64 - degree);

  static Polynomial start(std::uint64_t previous) { return previous ^ inverted; }
  static std::uint64_t finish(Polynomial r) { return r ^ inverted; }

  static constexpr Factors factors(unsigned bits) {
    return {reversed(power_of_x(bits + 64 - 1, generator)),
            reversed(power_of_x(bits - 1, generator))};
  }
  static __m128i leading(Polynomial r) { return lane(r, 0); }

  static Polynomial remainder(__m128i p) {
    static constexpr Factors k = {over_x(quotient_of_x128(generator)), over_x(generator)};
    const __m128i quotient = _mm_clmulepi64_si128(p, k.load(), 0x00);  // in the low half
    const __m128i product = _mm_clmulepi64_si128(quotient, k.load(), 0x10);
    return high_half(p ^ product) ^ ((generator & 1) * low_half(quotient));
  }
  static Polynomial append(Polynomial r, std::uint64_t word, unsigned size) {
    const Polynomial head = (r ^ word) << (64 - 8 * size);
    return remainder(lane(head, size == 8 ? 0 : r >> 8 * size));
  }

 private:
  // (x^64 + p) / x, to make up for the factor x of the product. The remainder, 0 or 1, is lost: it
  // does not reach the quotient, and is added to the product.
  static constexpr Polynomial over_x(Polynomial p) { return reversed((p >> 1) | 1ull << 63); }
};

using Crc16 = Forward<16, 0x8BB7>;
using Crc32c = Reflected<32, 0x1EDC6F41>;
using Crc64Nvme = Reflected<64, 0xAD93D23594C93659>;

}  // namespace
}  // namespace nvpi
