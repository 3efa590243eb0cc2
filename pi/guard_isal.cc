// The guard by ISA-L. Its conventions differ by CRC and stay in this file: crc16_t10dif chains finished
// values, crc32_iscsi inverts nothing, crc64_rocksoft_refl (2.31 and later) inverts by itself.
//
// crc16_t10dif_copy is fused, but loads the last bytes of a length that is no multiple of 16 twice, so it
// only gets whole multiples of 16. The rest, and the other guards, are copied first and then guarded
// over the copy.
#include <isa-l.h>

#include "pi/guard_kernels.h"
#include "pi/single_load.h"

namespace nvpi {
namespace {

unsigned char* isal_pointer(const std::byte* p) {
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(p));
}

std::uint64_t guard_16b(const std::byte* source, std::size_t size, std::uint64_t previous) noexcept {
  if (size == 0) return previous;
  return crc16_t10dif(static_cast<std::uint16_t>(previous), isal_pointer(source), size);
}

std::uint64_t guard_32b(const std::byte* source, std::size_t size, std::uint64_t previous) noexcept {
  auto crc = static_cast<unsigned>(~previous);
  constexpr std::size_t limit = 1u << 30;  // the length is an int
  for (; size > 0;) {
    const std::size_t piece = size < limit ? size : limit;
    crc = crc32_iscsi(isal_pointer(source), static_cast<int>(piece), crc);
    source += piece;
    size -= piece;
  }
  return static_cast<std::uint32_t>(~crc);
}

template <GuardKernel::Guard guard_of>
NVPI_RACES_WITH_USER std::uint64_t copy_then_guard(std::byte* target, const std::byte* source,
                                                   std::size_t size, std::uint64_t previous,
                                                   const std::byte*) noexcept {
  copy_once(target, source, size);
  return guard_of(target, size, previous);
}

template <GuardKernel::Guard guard_of>
NVPI_RACES_WITH_USER std::uint64_t guard_then_copy(std::byte* target, const std::byte* source,
                                                   std::size_t size, std::uint64_t previous,
                                                   const std::byte*) noexcept {
  const std::uint64_t result = guard_of(source, size, previous);
  copy_once(target, source, size);
  return result;
}

std::uint64_t copy_and_guard_16b(std::byte* target, const std::byte* source, std::size_t size,
                                 std::uint64_t previous, const std::byte* end) noexcept {
  const std::size_t fused = size >= 128 ? size & ~std::size_t{15} : 0;
  if (fused > 0) {
    previous = crc16_t10dif_copy(static_cast<std::uint16_t>(previous),
                                 reinterpret_cast<std::uint8_t*>(target), isal_pointer(source), fused);
  }
  return copy_then_guard<guard_16b>(target + fused, source + fused, size - fused, previous, end);
}

#ifdef NVPI_ISAL_HAS_CRC64_NVME
std::uint64_t guard_64b(const std::byte* source, std::size_t size, std::uint64_t previous) noexcept {
  return size == 0 ? previous : crc64_rocksoft_refl(previous, isal_pointer(source), size);
}
#endif

}  // namespace

const GuardKernel guard_isal = {"isal",
                                []() noexcept { return true; },
                                {{{guard_16b, copy_and_guard_16b, guard_then_copy<guard_16b>},
                                  {guard_32b, copy_then_guard<guard_32b>, guard_then_copy<guard_32b>},
#ifdef NVPI_ISAL_HAS_CRC64_NVME
                                  {guard_64b, copy_then_guard<guard_64b>, guard_then_copy<guard_64b>}}}};
#else
                                  {}}}};
#endif

}  // namespace nvpi
