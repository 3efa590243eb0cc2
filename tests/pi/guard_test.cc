// Every guard kernel that the CPU supports, for every guard it knows: the published values,
// agreement with a CRC computed bit by bit, no access outside of the buffers, and the single-fetch
// rule.
#include "pi/guard.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "pi/guard_kernels.h"

using namespace nvpi;
using Bytes = std::vector<std::byte>;
using namespace std::chrono_literals;

namespace {

using enum GuardType;
constexpr GuardType guard_types[] = {guard_16b, guard_32b, guard_64b};
constexpr std::size_t longest = 600;

// The reference: appends one byte, bit by bit. Shares nothing with the kernels.
std::uint64_t bitwise_guard(GuardType type, std::uint64_t previous, std::byte byte) {
  if (type == guard_16b) {
    std::uint64_t r = previous ^ std::to_integer<std::uint64_t>(byte) << 8;
    for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r & 0x8000) != 0 ? 0x18BB7 : 0);
    return r;
  }
  const bool is_32b = type == guard_32b;
  const std::uint64_t ones = is_32b ? 0xFFFFFFFF : ~std::uint64_t{0};
  const std::uint64_t polynomial = is_32b ? 0x82F63B78 : 0x9A6C9329AC4BC9B5;
  std::uint64_t r = previous ^ ones ^ std::to_integer<std::uint64_t>(byte);
  for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? polynomial : 0);
  return r ^ ones;
}

// The guards of the first 0, 1, 2, ... bytes.
std::vector<std::uint64_t> bitwise_guards(GuardType type, std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> guards = {0};
  for (const std::byte b : bytes) guards.push_back(bitwise_guard(type, guards.back(), b));
  return guards;
}

Bytes random_bytes(std::size_t size) {
  std::mt19937 random(1);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Calls check(type, functions) for every guard of every kernel, under its name.
template <typename Check>
void for_each_guard(Check check) {
  for (const GuardKernel* kernel : guard_kernels()) {
    if (!kernel->supported()) continue;
    for (const GuardType type : guard_types) {
      const auto& functions = kernel->functions[static_cast<std::size_t>(type)];
      if (functions.guard == nullptr) continue;
      CAPTURE(kernel->name);
      CAPTURE(8 * guard_size(type));
      check(type, functions);
    }
  }
}

// A page between two that must not be touched. (Never unmapped: tests are short.)
std::span<std::byte> fenced_page() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const all = mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  std::byte* const middle = static_cast<std::byte*>(all) + page;
  REQUIRE(mprotect(middle, page, PROT_READ | PROT_WRITE) == 0);
  return {middle, page};
}

// Flips bits of `bytes` from another thread for as long as it lives.
class Mutator {
 public:
  explicit Mutator(std::span<std::byte> bytes) : thread_([this, bytes] { run(bytes); }) {}
  ~Mutator() {
    stop_ = true;
    thread_.join();
  }
  Mutator(const Mutator&) = delete;
  Mutator& operator=(const Mutator&) = delete;

 private:
  void run(std::span<std::byte> bytes) {
    std::minstd_rand random(1);
    while (!stop_.load(std::memory_order_relaxed)) {
      const std::size_t i = random() % bytes.size();
      flip(bytes[i]);
      flip(bytes[bytes.size() - 1 - i % 16]);  // the kernels treat the end apart
    }
  }
  static void flip(std::byte& byte) {
    const std::atomic_ref<std::byte> shared(byte);
    shared.store(~shared.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Runs copy_and_guard(target, source) while the source changes, until the guard is not that of the
// target or the time is over. Returns whether there was such a mismatch.
template <typename CopyAndGuard>
bool mismatches(const GuardKernel::Functions& functions, std::size_t size,
                std::chrono::milliseconds time, CopyAndGuard copy_and_guard) {
  Bytes source = random_bytes(size);
  Bytes target(size);
  const Mutator mutator(source);
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    const std::uint64_t guard = copy_and_guard(target.data(), source.data());
    if (guard != functions.guard(target.data(), size, 0)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("guard: the string 123456789 has the check value of the CRC catalogue") {
  constexpr std::uint64_t check_values[] = {0xD0DB, 0xE3069283, 0xAE8B14860A799888};
  const auto digits = std::as_bytes(std::span("123456789", 9));
  for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
    const std::uint64_t expected = check_values[static_cast<std::size_t>(type)];
    CHECK(functions.guard(digits.data(), digits.size(), 0) == expected);
    CHECK(bitwise_guards(type, digits).back() == expected);
  });
}

TEST_CASE("guard: blocks of 4096 bytes have the published values") {
  // 32b and 64b: NVM Command Set Specification 1.0, section 5.2.1.
  struct Published {
    std::byte (*byte_at)(std::size_t);
    std::array<std::uint64_t, 3> guards;
  };
  const Published blocks[] = {
      {[](std::size_t) { return std::byte{0}; }, {0x0000, 0x98F94189, 0x6482D367EB22B64E}},
      {[](std::size_t) { return std::byte{0xFF}; }, {0x8B5D, 0x25C1FE13, 0xC0DDBA7302ECA3AC}},
      {[](std::size_t i) { return static_cast<std::byte>(i); },
       {0x8F6D, 0x9C71FE32, 0x3E729F5F6750449C}},
      {[](std::size_t i) { return static_cast<std::byte>(0xFF - i); },
       {0x0430, 0x214941A8, 0x9A2DF64B8E9E517E}}};
  for (const Published& block : blocks) {
    Bytes source(4096);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = block.byte_at(i);
    for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
      const std::uint64_t expected = block.guards[static_cast<std::size_t>(type)];
      CHECK(functions.guard(source.data(), source.size(), 0) == expected);
      Bytes target(source.size());
      CHECK(functions.copy_and_guard(target.data(), source.data(), source.size(), 0, nullptr) ==
            expected);
      CHECK(target == source);
    });
  }
}

TEST_CASE("guard: every length at every alignment agrees with the bitwise CRC") {
  constexpr std::size_t margin = 64;
  const Bytes bytes = random_bytes(longest);
  const Bytes canary(longest + 3 * margin, std::byte{0xC5});
  for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
    const auto expected = bitwise_guards(type, bytes);
    alignas(64) std::array<std::byte, 64 + longest + 7000> source_memory{};
    alignas(64) std::array<std::byte, longest + 3 * margin> target_memory{};
    std::size_t failures = 0;
    for (std::size_t alignment = 0; alignment < 64; ++alignment) {
      std::byte* const source = source_memory.data() + alignment;
      std::memcpy(source, bytes.data(), bytes.size());
      for (std::size_t size = 0; size <= longest; ++size) {
        std::byte* const target = target_memory.data() + margin + (alignment * 5 + size) % 64;
        const std::array<const std::byte*, 3> prefetch_ends = {nullptr, source + size,
                                                               source + size + 7000};
        std::memcpy(target_memory.data(), canary.data(), canary.size());
        const std::uint64_t guard =
            functions.copy_and_guard(target, source, size, 0, prefetch_ends[size % 3]);
        const auto before = static_cast<std::size_t>(target - target_memory.data());
        const bool good =
            guard == expected[size] && functions.guard(source, size, 0) == expected[size] &&
            std::memcmp(target, bytes.data(), size) == 0 &&
            std::memcmp(target_memory.data(), canary.data(), before) == 0 &&
            std::memcmp(target + size, canary.data(), canary.size() - before - size) == 0;
        if (!good && ++failures == 1) {
          CAPTURE(alignment);
          CAPTURE(size);
          CHECK(guard == expected[size]);
          FAIL_CHECK("the first failure of this guard");
        }
      }
    }
    CHECK(failures == 0);
  });
}

TEST_CASE("guard: long sources agree with the bitwise CRC") {
  const Bytes source = random_bytes(100'003);
  for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
    Bytes target(source.size());
    const std::uint64_t expected = bitwise_guards(type, source).back();
    CHECK(functions.guard(source.data(), source.size(), 0) == expected);
    CHECK(functions.copy_and_guard(target.data(), source.data(), source.size(), 0, nullptr) ==
          expected);
    CHECK(target == source);
  });
}

TEST_CASE("guard: two pieces in a row have the guard of the whole, wherever the cut") {
  for (const std::size_t size : {std::size_t{100}, longest}) {
    const Bytes source = random_bytes(size);
    for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
      const std::uint64_t expected = bitwise_guards(type, source).back();
      for (std::size_t cut = 0; cut <= size; ++cut) {
        CAPTURE(cut);
        const std::byte* const second = source.data() + cut;
        const std::uint64_t first_guard = functions.guard(source.data(), cut, 0);
        CHECK(functions.guard(second, size - cut, first_guard) == expected);
        Bytes target(size);
        CHECK(functions.copy_and_guard(target.data(), second, size - cut, first_guard, nullptr) ==
              expected);
      }
    });
  }
}

TEST_CASE("guard: no byte outside of source and target is touched") {
  const std::span<std::byte> source_page = fenced_page();
  const std::span<std::byte> target_page = fenced_page();
  const Bytes bytes = random_bytes(longest);
  for_each_guard([&](GuardType type, const GuardKernel::Functions& functions) {
    const auto expected = bitwise_guards(type, bytes);
    const auto check = [&](std::byte* target, std::byte* source, std::size_t size) {
      std::memcpy(source, bytes.data(), size);
      CHECK(functions.guard(source, size, 0) == expected[size]);
      CHECK(functions.copy_and_guard(target, source, size, 0, nullptr) == expected[size]);
      CHECK(std::memcmp(target, bytes.data(), size) == 0);
    };
    for (std::size_t size = 0; size <= longest; ++size) {
      CAPTURE(size);
      check(target_page.data(), source_page.data(), size);
      check(target_page.last(size).data(), source_page.last(size).data(), size);
    }
  });
}

TEST_CASE("guard: it matches the copy while another thread rewrites the source") {
  for_each_guard([&](GuardType, const GuardKernel::Functions& functions) {
    for (const std::size_t size : {512, 520, 4096, 4100, 4104, 4160}) {
      CAPTURE(size);
      const auto right = [&](std::byte* target, const std::byte* source) {
        return functions.copy_and_guard(target, source, size, 0, nullptr);
      };
      CHECK_FALSE(mismatches(functions, size, 50ms, right));
    }
  });
}

TEST_CASE("guard: loading the source twice would not match the copy") {
  // Shows that the test above notices a broken kernel.
  for_each_guard([&](GuardType, const GuardKernel::Functions& functions) {
    for (const std::size_t size : {512, 4100}) {
      CAPTURE(size);
      const auto wrong = [&](std::byte* target, const std::byte* source) {
        const std::uint64_t guard = functions.guard(source, size, 0);
        functions.copy_and_guard(target, source, size, 0, nullptr);
        return guard;
      };
      CHECK(mismatches(functions, size, 10s, wrong));
    }
  });
}

TEST_CASE("guard: the public functions use a kernel that knows the guard") {
  const Bytes source = random_bytes(4104);
  for (const GuardType type : guard_types) {
    CAPTURE(guard_implementation(type));
    Bytes target(source.size());
    const std::uint64_t expected = bitwise_guards(type, source).back();
    CHECK(guard(type, source) == expected);
    CHECK(copy_and_guard(type, target.data(), source) == expected);
    CHECK(target == source);
  }
}

TEST_CASE("guard: the portable kernel comes last, runs everywhere and knows every guard") {
  const GuardKernel& last = *guard_kernels().back();
  CHECK((&last == &guard_portable && last.supported()));
  for (const auto& functions : last.functions)
    CHECK(bool(functions.guard && functions.copy_and_guard));
}
