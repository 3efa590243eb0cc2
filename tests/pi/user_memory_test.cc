// UserMemory against a plain list of byte addresses.
#include "pi/user_memory.h"

#include <doctest/doctest.h>

#include "support/memory.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// Walks with runs of at most `limit` bytes and collects what it sees.
Bytes walk(const UserMemory& memory, std::size_t limit) {
  Bytes bytes;
  UserMemory::Cursor cursor(memory);
  for (;;) {
    const auto ahead = cursor.ahead();
    const auto run = cursor.next(limit);
    if (run.empty()) return bytes;
    REQUIRE(run.size() <= limit);
    REQUIRE(run.data() == ahead.data());
    REQUIRE(run.size() == std::min(limit, ahead.size()));
    bytes.insert(bytes.end(), run.begin(), run.end());
    REQUIRE(bytes.size() <= memory.size());
  }
}

}  // namespace

TEST_SUITE_BEGIN("user memory");

TEST_CASE("a view without memory is empty and has nothing to walk over") {
  const UserMemory nothing;
  CHECK(nothing.empty());
  CHECK(nothing.contiguous() == nullptr);
  CHECK(walk(nothing, 8).empty());
  CHECK(nothing.subview(0, 0).empty());
}

TEST_CASE("every window into any list of pieces shows the bytes that lie there") {
  Random random(test_seed());
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const Bytes bytes = random_bytes(random, 1 + below(random, 200));
    const Scattered scattered = scatter(random, bytes);
    const UserMemory memory = scattered.memory();
    REQUIRE(memory.size() == bytes.size());
    REQUIRE(walk(memory, 1 + below(random, 300)) == bytes);

    const std::size_t offset = below(random, bytes.size() + 1);
    const std::size_t size = below(random, bytes.size() - offset + 1);
    const UserMemory window = memory.subview(offset, size);
    const auto expected = std::span(bytes).subspan(offset, size);
    REQUIRE(window.size() == size);
    REQUIRE(walk(window, 1 + below(random, 50)) == copy_of(expected));

    const std::size_t inner = below(random, size + 1);
    REQUIRE(walk(window.subview(inner, size - inner), 7) == copy_of(expected.subspan(inner)));
  }
}

TEST_CASE("memory is contiguous only if all of it lies in one piece") {
  Bytes bytes(64);
  CHECK(UserMemory(std::span<std::byte>(bytes)).contiguous() == bytes.data());
  CHECK(UserMemory(std::span<std::byte>(bytes)).subview(8, 4).contiguous() == bytes.data() + 8);
  const iovec pieces[] = {{bytes.data(), 16}, {nullptr, 0}, {bytes.data() + 32, 16}};
  const UserMemory memory{std::span<const iovec>(pieces)};
  CHECK(memory.contiguous() == nullptr);
  CHECK(memory.subview(0, 16).contiguous() == bytes.data());
  CHECK(memory.subview(16, 16).contiguous() == bytes.data() + 32);
  CHECK(memory.subview(15, 2).contiguous() == nullptr);
}

TEST_CASE("a list that starts with empty pieces begins at the first byte there is") {
  Bytes bytes = from_hex("0102030405");
  const iovec pieces[] = {
      {nullptr, 0}, {bytes.data(), 0}, {bytes.data(), 2}, {bytes.data() + 2, 3}};
  const UserMemory memory{std::span<const iovec>(pieces)};
  CHECK(walk(memory, 100) == bytes);
  CHECK(walk(memory.subview(0, 2), 100) == from_hex("0102"));
  CHECK(walk(memory.subview(2, 3), 1) == from_hex("030405"));
}

TEST_SUITE_END();
