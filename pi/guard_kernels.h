// The implementations behind guard.h. Internal to pi/ and its tests and benchmarks.
//
// Every kernel computes finished, chaining guards (guard.h) and obeys the single-fetch rule: a byte of
// `source` is loaded once, and the guard comes from that load or from the stored copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pi/guard.h"

namespace nvpi {

struct GuardKernel {
  using Guard = std::uint64_t (*)(const std::byte* source, std::size_t size,
                                  std::uint64_t previous) noexcept;
  using CopyAndGuard = std::uint64_t (*)(std::byte* target, const std::byte* source, std::size_t size,
                                         std::uint64_t previous,
                                         const std::byte* prefetch_end) noexcept;
  struct Functions {
    Guard guard = nullptr;  // both null: this kernel does not know the guard
    CopyAndGuard copy_and_guard = nullptr;
    CopyAndGuard guard_and_copy = nullptr;  // the same function where each load is stored and folded
  };

  const char* name;
  bool (*supported)() noexcept;        // by the CPU at hand
  std::array<Functions, 3> functions;  // by GuardType
};

#ifdef __x86_64__
extern const GuardKernel guard_vpclmul512;
extern const GuardKernel guard_vpclmul256;
extern const GuardKernel guard_pclmul128;  // named "pclmul"
#endif
extern const GuardKernel guard_isal;
extern const GuardKernel guard_portable;

// Those in use for a guard: what guard() and its companions call.
const GuardKernel::Functions& chosen_guard_functions(GuardType type) noexcept;

// All kernels of this build, the fastest first. The last one, "portable", runs everywhere.
std::span<const GuardKernel* const> guard_kernels() noexcept;

}  // namespace nvpi
