// Guards of the protection information formats: CRC-16/T10-DIF (16b), CRC-32C (32b), CRC-64/NVME (64b).
// NVM Command Set Specification 1.0, section 5.2.1.
//
// A guard is a finished CRC, right-aligned in 64 bits. It chains: the guard of two pieces in a row is
// the guard of the second with the guard of the first as `previous`; the guard of nothing is 0.
//
// Pure functions, safe from any thread. They choose the fastest implementation for the CPU at the first
// call; the environment variable NVPI_GUARD names another one (see guard_implementation()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace nvpi {

// The values of the PIF field (NVM Command Set Specification 1.0, Figure 104).
enum class GuardType : std::uint8_t { guard_16b = 0, guard_32b = 1, guard_64b = 2 };

constexpr unsigned guard_size(GuardType type) {  // bytes
  constexpr unsigned sizes[] = {2, 4, 8};
  return sizes[static_cast<unsigned>(type)];
}

std::uint64_t guard(GuardType type, std::span<const std::byte> bytes,
                    std::uint64_t previous = 0) noexcept;

// Copies `source` to `target` and returns the guard of `target`. Each byte of `source` is loaded exactly
// once, so the guard matches the copy also while another thread rewrites the source. The two must not
// overlap. `prefetch_end` is the end of the memory that the caller will read next without a gap; loads
// are prefetched up to it. A null pointer means the end of `source`.
std::uint64_t copy_and_guard(GuardType type, std::byte* target, std::span<const std::byte> source,
                             std::uint64_t previous = 0,
                             const std::byte* prefetch_end = nullptr) noexcept;

// The other way: copies `source`, which is stable, to `target`, which another thread may rewrite meanwhile,
// and returns the guard of `source`. A guard of the target would be that of somebody else's bytes.
std::uint64_t guard_and_copy(GuardType type, std::byte* target, std::span<const std::byte> source,
                             std::uint64_t previous = 0) noexcept;

// Name of the implementation in use for this guard: "vpclmul512", "vpclmul256", "pclmul", "isal" or
// "portable". The last runs on every CPU.
std::string_view guard_implementation(GuardType type) noexcept;

}  // namespace nvpi
