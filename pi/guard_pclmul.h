// Guards by carry-less multiplication, for registers of any width. Internal to guard_*pclmul*.cc:
// each compiles this for its own instruction set. So it is all in an anonymous namespace and calls
// no inline function of another header, or the linker might give copies of those to the rest of the
// program.
//
// Bytes are a polynomial over GF(2), and a guard is its remainder by the generator. A 16-byte lane
// moves n bits towards the end when its halves are multiplied by x^n mod generator (Gopal et al.,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Four
// registers full of lanes are folded over the bytes like this, and then every lane at once to the
// end.
#pragma once

#include <immintrin.h>

#include "pi/guard_kernels.h"
#include "pi/guard_polynomials.h"
#include "pi/guard_reader.h"
#include "pi/single_load.h"  // NVPI_RACES_WITH_USER only

namespace nvpi {
namespace {

// A register of one lane. Wider ones have the same members.
struct Xmm {
  using Register = __m128i;
  static Register load(const void* p) { return _mm_load_si128(static_cast<const __m128i*>(p)); }
  static Register repeat(__m128i lane) { return lane; }
  static Register first_lane(__m128i lane) { return lane; }  // the other lanes are 0
  static __m128i sum_of_lanes(Register v) { return v; }
  static Register shuffle(Register v, Register order) { return _mm_shuffle_epi8(v, order); }
  static Register multiply(Register v, Register factors) {  // both halves of every lane
    return _mm_clmulepi64_si128(v, factors, 0x00) ^ _mm_clmulepi64_si128(v, factors, 0x11);
  }
};

// Turns every lane into 128 coefficients in the order that the arithmetic of Crc needs.
template <typename Crc, typename Vector>
[[gnu::always_inline]] inline typename Vector::Register ordered(typename Vector::Register lanes) {
  if constexpr (Crc::reflected) {
    return lanes;
  } else {
    const __m128i reverse = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return Vector::shuffle(lanes, Vector::repeat(reverse));
  }
}

// Takes in all whole lanes; at least one. Returns the remainder so far.
template <typename Crc, bool copying>
[[gnu::always_inline]] inline Polynomial fold_lanes(Polynomial r, Reader<copying>& in) {
  constexpr Factors over_lane = Crc::factors(128);
  constexpr Factors to_end = Crc::factors(64);
  __m128i sum = ordered<Crc, Xmm>(in.template next<__m128i>()) ^ Crc::leading(r);
  while (in.size >= sizeof sum) {
    sum = Xmm::multiply(sum, over_lane.load()) ^ ordered<Crc, Xmm>(in.template next<__m128i>());
  }
  return Crc::remainder(Xmm::multiply(sum, to_end.load()));
}

// Takes each lane of a stride to the form that remainder() expects: times x^64.
template <unsigned count>
struct LaneFactors {
  Factors lane[count];
};

template <typename Crc, unsigned count>
constexpr LaneFactors<count> factors_to_end() {
  LaneFactors<count> result{};
  for (unsigned i = 0; i < count; ++i) result.lane[i] = Crc::factors(128 * (count - 1 - i) + 64);
  return result;
}

// Like fold_lanes(), in strides of four registers whose multiplications overlap. (Not in an array:
// GCC at -O2 would keep that in memory.)
template <typename Crc, typename Vector, bool copying>
[[gnu::always_inline]] inline Polynomial fold_strides(Polynomial r, Reader<copying>& in) {
  using Register = typename Vector::Register;
  constexpr unsigned stride = 4 * sizeof(Register);
  constexpr Factors over_stride = Crc::factors(8 * stride);
  alignas(64) static constexpr auto to_end = factors_to_end<Crc, stride / 16>();
  const auto next = [&]() __attribute__((always_inline)) {
    return ordered<Crc, Vector>(in.template next<Register>());
  };

  in.prefetch_start();
  in.template prefetch_ahead<stride>();
  Register a = next() ^ Vector::first_lane(Crc::leading(r));
  Register b = next();
  Register c = next();
  Register d = next();
  const Register factors = Vector::repeat(over_stride.load());
  while (in.size >= stride) {
    in.template prefetch_ahead<stride>();
    a = Vector::multiply(a, factors) ^ next();
    b = Vector::multiply(b, factors) ^ next();
    c = Vector::multiply(c, factors) ^ next();
    d = Vector::multiply(d, factors) ^ next();
  }
  const auto end = [&](Register sum, int i) {
    return Vector::multiply(sum, Vector::load(&to_end.lane[i * sizeof(Register) / 16]));
  };
  return Crc::remainder(Vector::sum_of_lanes(end(a, 0) ^ end(b, 1) ^ end(c, 2) ^ end(d, 3)));
}

template <typename Crc, typename Vector, bool copying>
NVPI_RACES_WITH_USER std::uint64_t guard_of(Reader<copying> in, std::uint64_t previous) noexcept {
  Polynomial r = Crc::start(previous);
  if (in.size >= 4 * sizeof(typename Vector::Register)) r = fold_strides<Crc, Vector>(r, in);
  if (in.size >= sizeof(__m128i)) r = fold_lanes<Crc>(r, in);
  if (in.size >= 8) r = Crc::append(r, in.template next<std::uint64_t>(), 8);
  if (in.size > 0) {
    const auto size = static_cast<unsigned>(in.size);
    std::uint64_t word = 0;
    for (unsigned i = 0; i < size; ++i) {
      word |= std::uint64_t{in.template next<std::uint8_t>()} << (8 * i);
    }
    r = Crc::append(r, word, size);
  }
  return Crc::finish(r);
}

template <typename Crc, typename Vector>
constexpr GuardKernel::CopyAndGuard copy_and_guard_of =
    [](std::byte* target, const std::byte* source, std::size_t size, std::uint64_t previous,
       const std::byte* prefetch_end) noexcept {
      const std::byte* const end = prefetch_end == nullptr ? source + size : prefetch_end;
      return guard_of<Crc, Vector, true>({source, size, target, end}, previous);
    };

template <typename Crc, typename Vector>
constexpr GuardKernel::Functions functions_of = {
    [](const std::byte* source, std::size_t size, std::uint64_t previous) noexcept {
      return guard_of<Crc, Vector, false>({source, size}, previous);
    },
    copy_and_guard_of<Crc, Vector>, copy_and_guard_of<Crc, Vector>};

// A kernel for GuardKernel::functions.
template <typename Vector>
constexpr std::array<GuardKernel::Functions, 3> functions_for = {
    functions_of<Crc16, Vector>, functions_of<Crc32c, Vector>, functions_of<Crc64Nvme, Vector>};

}  // namespace
}  // namespace nvpi
