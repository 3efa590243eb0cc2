// One load, whatever the optimiser thinks. Internal to the library.
//
// User memory may change between two loads of the same address, but the compiler assumes that it
// does not and may load twice. Passing the loaded value through an empty asm statement makes it
// opaque: from there on only the register is known, not where it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nvpi {

template <typename T>
[[gnu::always_inline]] inline T load_once(const std::byte* source) noexcept {
  T value;
  std::memcpy(&value, source, sizeof value);
#ifdef __x86_64__
  if constexpr (sizeof value > 8) {
    asm volatile("" : "+x"(value));
    return value;
  }
#endif
  asm volatile("" : "+r"(value));
  return value;
}

// The application may race with these loads on purpose; the rule above is what makes that harmless.
// ThreadSanitizer cannot know, so functions that touch user memory carry this attribute.
#if defined(__SANITIZE_THREAD__)
#define NVPI_RACES_WITH_USER __attribute__((no_sanitize("thread"), noinline))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NVPI_RACES_WITH_USER __attribute__((no_sanitize("thread"), noinline))
#endif
#endif
#ifndef NVPI_RACES_WITH_USER
#define NVPI_RACES_WITH_USER
#endif

// The widest word that every CPU of the architecture can load at once.
#ifdef __x86_64__
using CopyWord [[gnu::vector_size(16)]] = std::uint64_t;
#else
using CopyWord = std::uint64_t;
#endif

template <typename T>
[[gnu::always_inline]] inline void copy_word_once(std::byte* target,
                                                  const std::byte* source) noexcept {
  const T word = load_once<T>(source);
  std::memcpy(target, &word, sizeof word);
}

// Copies loading every byte once. Never libc memcpy per block, which may choose a string
// instruction with a start-up cost of its own.
NVPI_RACES_WITH_USER inline void copy_once(std::byte* target, const std::byte* source,
                                           std::size_t size) noexcept {
  constexpr std::size_t step = 4 * sizeof(CopyWord);
  for (; size >= step; size -= step, source += step, target += step) {
    for (std::size_t i = 0; i < step; i += sizeof(CopyWord)) {
      copy_word_once<CopyWord>(target + i, source + i);
    }
  }
  for (; size >= 8; size -= 8, source += 8, target += 8) {
    copy_word_once<std::uint64_t>(target, source);
  }
  for (; size > 0; --size, ++source, ++target) copy_word_once<std::uint8_t>(target, source);
}

}  // namespace nvpi
