// How the carry-less multiplication kernels see their source: as values of any type, each byte
// loaded once. Internal to guard_pclmul.h, and in an anonymous namespace for the same reason.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace nvpi {
namespace {

// Hands out `source` from front to back. If copying, it goes to `target` from the same register.
template <bool copying>
struct Reader {
  const std::byte* source;
  std::size_t size;
  std::byte* target = nullptr;
  const std::byte* prefetch_end = nullptr;

  template <typename T>
  [[gnu::always_inline]] T next() {
    T value;
    std::memcpy(&value, source, sizeof value);
    if constexpr (std::is_integral_v<T>) {
      asm volatile("" : "+r"(value));  // opaque: see single_load.h, which this must not call
    } else {
      asm volatile("" : "+v"(value));
    }
    if constexpr (copying) {
      std::memcpy(target, &value, sizeof value);
      target += sizeof value;
    }
    source += sizeof value;
    size -= sizeof value;
    return value;
  }

  // For memory outside the cache: the first KiB of both sides at once (of the target for writing,
  // or the stores would wait for one line after the other), then the source a KiB ahead. Never past
  // the end.
  static constexpr std::size_t prefetch_distance = 1024;

  [[gnu::always_inline]] void prefetch_start() const {
    if constexpr (!copying) return;
    for (std::size_t i = 0; i < size && i < prefetch_distance; i += 64) {
      __builtin_prefetch(source + i);
      __builtin_prefetch(target + i, 1);
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void prefetch_ahead() const {
    if constexpr (!copying) return;
    if (static_cast<std::size_t>(prefetch_end - source) < prefetch_distance + bytes) return;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(source + prefetch_distance + i);
  }
};

}  // namespace
}  // namespace nvpi
