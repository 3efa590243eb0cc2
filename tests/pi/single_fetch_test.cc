// The rule that the project stands on: while another thread rewrites the user's buffer, the guard
// is that of the copy. Method: a mutator flips bytes of the source without pause; after every copy
// the guard in the tuple, or the one returned, is compared with that of the target. The same
// harness over the wrong order (guard the source, then copy) must see mismatches, or it would prove
// nothing.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "pi/guard.h"
#include "pi/protect.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/mutator.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

// Repeats `mismatches()` for a while, at most until `enough` of them were seen. Returns how many.
template <typename Step>
std::uint64_t count_mismatches(std::chrono::milliseconds time, std::uint64_t enough,
                               Step mismatches) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::uint64_t count = 0;
  while (count < enough && std::chrono::steady_clock::now() < end) count += mismatches();
  return count;
}

constexpr std::uint64_t no_limit = ~0ull;

}  // namespace

TEST_SUITE_BEGIN("single fetch");

TEST_CASE("protect: the guard matches the copied block whatever happens to the source meanwhile") {
  const PiFormat::Fields formats[] = {
      {512, 8, separate, type_1},
      {4096, 8, separate, type_1},
      {4096, 8, extended, type_1},
      {4096, 64, separate, type_1, last},
      {4096, 64, extended, type_1, first},
      {4096, 64, separate, type_1, last, guard_64b},
      {4096, 16, separate, type_1, last, guard_32b, 16},
  };
  for (const PiFormat::Fields& fields : formats) {
    CAPTURE(describe(fields));
    const PiFormat format = make_format(fields);
    constexpr std::uint32_t count = 4;
    Bytes data(std::size_t{count} * fields.data_size);
    Bytes metadata(std::size_t{count} * fields.metadata_size);
    // One split in the middle of a block, at a bad place.
    const iovec pieces[] = {
        {data.data(), fields.data_size + 101},
        {data.data() + fields.data_size + 101, data.size() - fields.data_size - 101}};
    const Mutator data_mutator{std::span<std::byte>(data)};
    BlockBuffer blocks(format, count);
    const std::uint64_t mismatches = count_mismatches(300ms, no_limit, [&] {
      protect(
          format, {}, blocks.blocks(),
          {UserMemory(std::span<const iovec>(pieces)), UserMemory(std::span<std::byte>(metadata))});
      std::uint64_t wrong = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        Bytes guarded = copy_of(blocks.data(i));
        const auto covered = blocks.metadata(i).first(reference_pi_offset(fields));
        guarded.insert(guarded.end(), covered.begin(), covered.end());
        wrong += decode_tuple(format, blocks.pi(i).data()).guard !=
                 reference_guard(fields.guard, guarded);
      }
      return wrong;
    });
    CHECK(mismatches == 0);
  }
}

TEST_CASE("protect: metadata that changes during the copy is guarded as it was copied") {
  const PiFormat::Fields fields{512, 264, separate, type_1, last};
  const PiFormat format = make_format(fields);
  Bytes data(4 * 512), metadata(4 * 264);
  const Mutator mutator{std::span<std::byte>(metadata)};
  BlockBuffer blocks(format, 4);
  const std::uint64_t mismatches = count_mismatches(300ms, no_limit, [&] {
    protect(format, {}, blocks.blocks(),
            {UserMemory(std::span<std::byte>(data)), UserMemory(std::span<std::byte>(metadata))});
    return verify(format, {}, blocks.blocks()).mismatched;
  });
  CHECK(mismatches == 0);
}

TEST_CASE("copy_and_guard: the guard is that of the target, for lengths with and without a tail") {
  for (const GuardType type : {guard_16b, guard_32b, guard_64b}) {
    for (const std::size_t size : {512, 520, 4096, 4104, 4160}) {
      CAPTURE(static_cast<unsigned>(type));
      CAPTURE(size);
      Bytes source(size), target(size);
      const Mutator mutator{std::span<std::byte>(source)};
      const std::uint64_t mismatches = count_mismatches(200ms, no_limit, [&]() -> std::uint64_t {
        return copy_and_guard(type, target.data(), source) != reference_guard(type, target) ? 1 : 0;
      });
      CHECK(mismatches == 0);
    }
  }
}

TEST_CASE("the harness bites: guarding the source and then copying it is caught") {
  Bytes source(4096), target(4096);
  const Mutator mutator{std::span<std::byte>(source)};
  const std::uint64_t mismatches = count_mismatches(10s, 1, [&]() -> std::uint64_t {
    const std::uint64_t of_source = guard(guard_16b, source);
    for (std::size_t i = 0; i < source.size(); ++i) {
      target[i] = std::atomic_ref(source[i]).load(std::memory_order_relaxed);
    }
    return of_source != reference_guard(guard_16b, target) ? 1 : 0;
  });
  CHECK(mismatches > 0);
}

TEST_SUITE_END();
