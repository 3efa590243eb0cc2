#include "pi/guard.h"

#include <array>
#include <cstdlib>

#include "pi/guard_kernels.h"

namespace nvpi {
namespace {

// The fastest first, for every guard. The 128-bit kernel ties with ISA-L on hot memory and is faster on
// cold memory and for the guards that ISA-L does not copy and compute at once.
constexpr const GuardKernel* kernels[] = {
#ifdef __x86_64__
    &guard_vpclmul512, &guard_vpclmul256, &guard_pclmul128,
#endif
    &guard_isal, &guard_portable};

const GuardKernel* choose(GuardType type, std::string_view wanted) {
  const GuardKernel* best = nullptr;
  for (const GuardKernel* kernel : kernels) {
    const bool usable =
        kernel->functions[static_cast<std::size_t>(type)].guard != nullptr && kernel->supported();
    if (usable && wanted == kernel->name) return kernel;
    if (usable && best == nullptr) best = kernel;
  }
  return best;  // never null: the portable kernel knows every guard
}

const GuardKernel* chosen(GuardType type) {
  static const std::array<const GuardKernel*, 3> choice = [] {
    const char* wanted = std::getenv("NVPI_GUARD");
    std::array<const GuardKernel*, 3> result{};
    for (unsigned i = 0; i < 3; ++i) {
      result[i] = choose(static_cast<GuardType>(i), wanted == nullptr ? "" : wanted);
    }
    return result;
  }();
  return choice[static_cast<std::size_t>(type)];
}

}  // namespace

const GuardKernel::Functions& chosen_guard_functions(GuardType type) noexcept {
  return chosen(type)->functions[static_cast<std::size_t>(type)];
}

std::span<const GuardKernel* const> guard_kernels() noexcept { return kernels; }

std::string_view guard_implementation(GuardType type) noexcept { return chosen(type)->name; }

std::uint64_t guard(GuardType type, std::span<const std::byte> bytes,
                    std::uint64_t previous) noexcept {
  return chosen_guard_functions(type).guard(bytes.data(), bytes.size(), previous);
}

std::uint64_t copy_and_guard(GuardType type, std::byte* target, std::span<const std::byte> source,
                             std::uint64_t previous, const std::byte* prefetch_end) noexcept {
  return chosen_guard_functions(type).copy_and_guard(target, source.data(), source.size(), previous, prefetch_end);
}

std::uint64_t guard_and_copy(GuardType type, std::byte* target, std::span<const std::byte> source,
                             std::uint64_t previous) noexcept {
  return chosen_guard_functions(type).guard_and_copy(target, source.data(), source.size(), previous, nullptr);
}

}  // namespace nvpi
