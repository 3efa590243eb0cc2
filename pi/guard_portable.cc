// The guard on any CPU: slicing by eight tables, computed at compile time.
#include <array>
#include <bit>

#include "pi/guard_kernels.h"
#include "pi/single_load.h"

namespace nvpi {
namespace {

// All three CRCs in one reflected 64-bit form. A CRC that is not reflected (16b) runs over the same
// bytes from its other end: its register is kept in the top bits and moves left.
using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr Tables make_reflected(std::uint64_t polynomial) {
  Tables t{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t r = i;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) ? polynomial : 0);
    t[0][i] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xFF];
  }
  return t;
}

constexpr Tables make_forward(std::uint64_t polynomial) {
  Tables t{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t r = i << 56;
    for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r >> 63) ? polynomial : 0);
    t[0][i] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] << 8) ^ t[0][t[k - 1][i] >> 56];
  }
  return t;
}

struct Crc16 {
  static constexpr Tables tables = make_forward(0x8BB7ull << 48);
  static constexpr std::uint64_t start(std::uint64_t previous) { return previous << 48; }
  static constexpr std::uint64_t finish(std::uint64_t r) { return r >> 48; }
  static std::uint64_t word(std::uint64_t r, std::uint64_t little_endian) {
    r ^= __builtin_bswap64(little_endian);
    std::uint64_t next = 0;
    for (unsigned k = 0; k < 8; ++k) next ^= tables[k][(r >> (8 * k)) & 0xFF];
    return next;
  }
  static std::uint64_t byte(std::uint64_t r, std::uint8_t b) {
    return (r << 8) ^ tables[0][(r >> 56) ^ b];
  }
};

template <std::uint64_t polynomial, unsigned bits>
struct Reflected {
  static constexpr Tables tables = make_reflected(polynomial);
  static constexpr std::uint64_t ones = ~0ull >> (64 - bits);
  static constexpr std::uint64_t start(std::uint64_t previous) { return previous ^ ones; }
  static constexpr std::uint64_t finish(std::uint64_t r) { return r ^ ones; }
  static std::uint64_t word(std::uint64_t r, std::uint64_t little_endian) {
    r ^= little_endian;
    std::uint64_t next = 0;
    for (unsigned k = 0; k < 8; ++k) next ^= tables[7 - k][(r >> (8 * k)) & 0xFF];
    return next;
  }
  static std::uint64_t byte(std::uint64_t r, std::uint8_t b) {
    return (r >> 8) ^ tables[0][(r ^ b) & 0xFF];
  }
};

using Crc32c = Reflected<0x82F63B78, 32>;
using Crc64Nvme = Reflected<0x9A6C9329AC4BC9B5, 64>;

template <typename Crc>
NVPI_RACES_WITH_USER std::uint64_t copy_and_guard_of(std::byte* target, const std::byte* source,
                                                     std::size_t size, std::uint64_t previous,
                                                     const std::byte*) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t r = Crc::start(previous);
  for (; size >= 8; size -= 8, source += 8, target += 8) {
    const auto w = load_once<std::uint64_t>(source);
    std::memcpy(target, &w, sizeof w);
    r = Crc::word(r, w);
  }
  for (; size > 0; --size, ++source, ++target) {
    const auto b = load_once<std::uint8_t>(source);
    std::memcpy(target, &b, sizeof b);
    r = Crc::byte(r, b);
  }
  return Crc::finish(r);
}

template <typename Crc>
NVPI_RACES_WITH_USER std::uint64_t guard_of(const std::byte* source, std::size_t size,
                                            std::uint64_t previous) noexcept {
  std::uint64_t r = Crc::start(previous);
  for (; size >= 8; size -= 8, source += 8) r = Crc::word(r, load_once<std::uint64_t>(source));
  for (; size > 0; --size, ++source) r = Crc::byte(r, load_once<std::uint8_t>(source));
  return Crc::finish(r);
}

template <typename Crc>
constexpr GuardKernel::Functions functions_of = {guard_of<Crc>, copy_and_guard_of<Crc>, copy_and_guard_of<Crc>};

}  // namespace

const GuardKernel guard_portable = {
    "portable",
    []() noexcept { return true; },
    {functions_of<Crc16>, functions_of<Crc32c>, functions_of<Crc64Nvme>}};

}  // namespace nvpi
