// Slots: what they are, and when they come back.
#include "bounce/bounce_pool.h"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "support/process.h"

using namespace nvpi;

namespace {

std::unique_ptr<BouncePool> make_pool(std::uint32_t slots, std::size_t data, std::size_t metadata,
                                      bool huge_pages = false) {
  auto pool = BouncePool::create({.slot_count = slots,
                                  .data_size = data,
                                  .metadata_size = metadata,
                                  .huge_pages = huge_pages});
  REQUIRE(pool.has_value());
  return std::move(*pool);
}

bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

}  // namespace

TEST_SUITE_BEGIN("bounce pool");

TEST_CASE("slots are distinct, aligned, as large as asked for and do not overlap") {
  struct Row {
    std::size_t data, metadata;
  };
  for (const Row row :
       {Row{4096, 8}, Row{520, 0}, Row{131072, 2048}, Row{4104, 1}, Row{1, 65535}}) {
    CAPTURE(row.data);
    CAPTURE(row.metadata);
    constexpr std::uint32_t count = 9;
    const auto pool = make_pool(count, row.data, row.metadata);
    std::vector<BounceBuffer> slots;
    std::set<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < count; ++i) {
      slots.push_back(pool->acquire());
      BounceBuffer& slot = slots.back();
      REQUIRE(slot);
      indices.insert(slot.index());
      CHECK(slot.data().size() == row.data);
      CHECK(slot.metadata().size() == row.metadata);
      CHECK(is_aligned(slot.data().data(), 4096));
      CHECK(is_aligned(slot.metadata().data(), 64));
      CHECK(pool->data_area(slot.index()).iov_base == slot.data().data());
      CHECK(pool->data_area(slot.index()).iov_len == row.data);
      // Every slot is filled with its own number; an overlap would show below.
      std::memset(slot.data().data(), static_cast<int>(i + 1), row.data);
      std::memset(slot.metadata().data(), static_cast<int>(i + 101), row.metadata);
    }
    CHECK(indices.size() == count);
    CHECK(*indices.rbegin() == count - 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const std::byte b : slots[i].data()) REQUIRE(b == static_cast<std::byte>(i + 1));
      for (const std::byte b : slots[i].metadata()) REQUIRE(b == static_cast<std::byte>(i + 101));
    }
  }
}

TEST_CASE("an empty pool is back-pressure: no slot until one comes back") {
  const auto pool = make_pool(2, 512, 8);
  BounceBuffer a = pool->acquire();
  BounceBuffer b = pool->acquire();
  CHECK(pool->free_count() == 0);
  CHECK_FALSE(pool->acquire());
  const std::uint32_t index = a.index();
  a.release();
  CHECK_FALSE(a);
  CHECK(pool->free_count() == 1);
  const BounceBuffer again = pool->acquire();
  REQUIRE(again);
  CHECK(again.index() == index);  // the one that is still in the cache
}

TEST_CASE("a slot goes back once, however often it is released, and when its buffer dies") {
  const auto pool = make_pool(3, 512, 0);
  {
    BounceBuffer slot = pool->acquire();
    slot.release();
    slot.release();
    CHECK(pool->free_count() == 3);
    const BounceBuffer other = pool->acquire();
    CHECK(pool->free_count() == 2);
  }
  CHECK(pool->free_count() == 3);
}

TEST_CASE("moving a buffer moves the right to the slot and nothing else") {
  const auto pool = make_pool(2, 512, 0);
  BounceBuffer a = pool->acquire();
  std::byte* const memory = a.data().data();
  BounceBuffer b = std::move(a);
  CHECK_FALSE(a);  // NOLINT(bugprone-use-after-move): that is the point
  CHECK(b.data().data() == memory);
  CHECK(pool->free_count() == 1);

  BounceBuffer c = pool->acquire();
  c = std::move(b);  // gives its own slot back
  CHECK(c.data().data() == memory);
  CHECK(pool->free_count() == 1);
  BounceBuffer& same = c;
  c = std::move(same);
  CHECK(c);
  CHECK(pool->free_count() == 1);
  a = BounceBuffer();
  CHECK(pool->free_count() == 1);
}

TEST_CASE("an abandoned slot is never handed out again") {
  const auto pool = make_pool(3, 512, 0);
  BounceBuffer lost = pool->acquire();
  const std::uint32_t index = lost.index();
  lost.abandon();
  CHECK_FALSE(lost);
  lost.abandon();
  lost.release();
  CHECK(pool->abandoned_count() == 1);
  CHECK(pool->free_count() == 2);
  for (int round = 0; round < 10; ++round) {
    BounceBuffer a = pool->acquire();
    BounceBuffer b = pool->acquire();
    REQUIRE(a);
    REQUIRE(b);
    CHECK(a.index() != index);
    CHECK(b.index() != index);
    CHECK_FALSE(pool->acquire());
  }
}

TEST_CASE("the memory of an abandoned slot outlives its pool: a late transfer hits nobody") {
  auto pool = make_pool(2, 4096, 64);
  BounceBuffer lost = pool->acquire();
  std::byte* const memory = lost.data().data();
  lost.abandon();
  pool.reset();
  std::memset(memory, 0x5A, 4096);  // as a device may do
  CHECK(memory[4095] == std::byte{0x5A});
}

TEST_CASE("slots start as zeros, so nothing old leaks to a device") {
  const auto pool = make_pool(4, 4096, 64);
  const BounceBuffer slot = pool->acquire();
  for (const std::byte b : slot.data()) REQUIRE(b == std::byte{0});
  for (const std::byte b : slot.metadata()) REQUIRE(b == std::byte{0});
}

TEST_CASE("R38: a pool that asks for huge pages works whether or not there are any") {
  const auto pool = make_pool(5, 1u << 20, 2048, true);
  for (int round = 0; round < 2; ++round) {
    std::vector<BounceBuffer> slots;
    while (BounceBuffer slot = pool->acquire()) slots.push_back(std::move(slot));
    CHECK(slots.size() == 5);
    for (BounceBuffer& slot : slots) std::memset(slot.data().data(), 1, slot.data().size());
  }
  CHECK(pool->free_count() == 5);
  MESSAGE("backing: ", static_cast<int>(pool->backing()));
}

TEST_CASE("a pool below the size of a huge page, or that asks for none, has small pages") {
  CHECK(make_pool(2, 4096, 0, true)->backing() == BouncePool::Backing::small_pages);
  CHECK(make_pool(8, 1u << 20, 0, false)->backing() == BouncePool::Backing::small_pages);
}

TEST_CASE("memory that cannot be had is an errno value") {
  const auto pool = BouncePool::create(
      {.slot_count = 1u << 20, .data_size = std::size_t{1} << 40, .huge_pages = false});
  REQUIRE_FALSE(pool.has_value());
  CHECK(pool.error() == ENOMEM);
}

TEST_CASE("making and destroying pools leaves no mapping behind") {
  make_pool(4, 1u << 20, 64, true);
  const test::ProcessUse before = test::process_use();
  for (int i = 0; i < 50; ++i) {
    make_pool(4, 1u << 20, 64, true);
    make_pool(4, 4096, 64, false);
  }
  CHECK(test::process_use().mapped_bytes <= before.mapped_bytes + (1u << 20));
}

TEST_SUITE_END();
