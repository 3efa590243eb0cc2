// verify_and_copy(): what reaches the user's memory.
#include <doctest/doctest.h>

#include "pi/protect.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/mutator.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// Blocks of random bytes with the tuples that belong to them.
struct Source {
  Source(Random& random, const PiFormat& f, const PiTags& tags, std::uint32_t count)
      : format(f), blocks(f, count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const Bytes block = random_bytes(random, f.data_size());
      const Bytes beside = random_bytes(random, f.metadata_size());
      std::copy(block.begin(), block.end(), blocks.data(i).begin());
      std::copy(beside.begin(), beside.end(), blocks.metadata(i).begin());
      if (!f.has_pi()) continue;
      const Bytes tuple =
          reference_tuple(f.fields(), reference_tuple_of(f.fields(), tags, i, block, beside));
      std::copy(tuple.begin(), tuple.end(), blocks.pi(i).begin());
    }
  }

  // What the user must see: blocks below `end`, those that are bad as zeros; nothing from there on.
  Bytes expected(bool metadata, const std::vector<bool>& bad, std::uint32_t end,
                 std::byte untouched) {
    Bytes all;
    for (std::uint32_t i = 0; i < blocks.count(); ++i) {
      const auto part = metadata ? blocks.metadata(i) : blocks.data(i);
      if (i >= end) {
        all.insert(all.end(), part.size(), untouched);
      } else if (bad[i]) {
        all.insert(all.end(), part.size(), std::byte{0});
      } else {
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  }

  PiFormat format;
  BlockBuffer blocks;
};

constexpr std::byte untouched{0x77};

// One random read: some blocks damaged or escaped, the sink stopping somewhere or never.
void read_and_check(Random& random, const PiFormat& format) {
  const auto count = static_cast<std::uint32_t>(1 + below(random, 6));
  const PiTags tags = random_tags(random, format);
  Source source(random, format, tags, count);
  std::vector<bool> bad(count);
  std::uint32_t end = count;
  const std::size_t stop_after = 1 + below(random, 8);
  std::size_t bad_count = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!format.has_pi() || below(random, 3) != 0) continue;
    source.blocks.data(i)[below(random, format.data_size())] ^= std::byte{4};
    bad[i] = true;
    if (++bad_count == stop_after) end = std::min(end, i + 1);
  }
  const bool with_metadata = format.metadata_size() > 0 && coin(random);
  Scattered data = scatter(random, Bytes(std::size_t{count} * format.data_size(), untouched));
  Scattered metadata =
      scatter(random, Bytes(std::size_t{count} * format.metadata_size(), untouched));
  std::size_t calls = 0;
  const auto sink = [&](const PiMismatch&) { return ++calls < stop_after; };
  const VerifyCounts counts =
      verify_and_copy(format, {.tags = tags}, source.blocks.blocks(),
                      {data.memory(), with_metadata ? metadata.memory() : UserMemory{}}, sink);
  REQUIRE(counts.mismatched == std::min(bad_count, stop_after));
  REQUIRE(counts.mismatched + counts.verified + counts.unprotected == end);
  REQUIRE(data.gathered() == source.expected(false, bad, end, untouched));
  if (with_metadata) {
    REQUIRE(metadata.gathered() == source.expected(true, bad, end, untouched));
  } else {
    REQUIRE(all_equal(metadata.gathered(), 0x77));
  }
  REQUIRE(data.surroundings_intact());
  REQUIRE(metadata.surroundings_intact());
}

}  // namespace

TEST_SUITE_BEGIN("verify and copy");

TEST_CASE("good blocks reach the user byte for byte, bad ones as zeros, and nothing beside them") {
  Random random(test_seed());
  for (int round = 0; round < 3000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    CAPTURE(round);
    CAPTURE(describe(format));
    read_and_check(random, format);
  }
}

TEST_CASE("without PI in the format the blocks are copied out as they are") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields).without_pi();
    CAPTURE(describe(format));
    for (int round = 0; round < 20; ++round) read_and_check(random, format);
  }
}

TEST_CASE("an unprotected block is delivered and counted as such") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, extended, type_1});
  Source source(random, format, {.app_tag = 0xFFFF}, 3);
  Bytes data(3 * 512);
  const VerifyCounts counts = verify_and_copy(format, {}, source.blocks.blocks(),
                                              {UserMemory(std::span<std::byte>(data)), {}});
  CHECK(counts.unprotected == 3);
  CHECK(counts.verified == 0);
  CHECK(data == source.expected(false, std::vector<bool>(3), 3, untouched));
}

TEST_CASE("with the guard check off a changed byte passes and is delivered") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_1});
  Source source(random, format, {}, 2);
  source.blocks.data(1)[9] ^= std::byte{1};
  Bytes data(2 * 512);
  const VerifyCounts counts =
      verify_and_copy(format, {.checks = {.guard = false}}, source.blocks.blocks(),
                      {UserMemory(std::span<std::byte>(data)), {}});
  CHECK(counts.verified == 2);
  CHECK(data == source.expected(false, std::vector<bool>(2), 2, untouched));
}

TEST_CASE("R32: a thread that rewrites the user's memory during the check causes no mismatch") {
  struct Row {
    PiFormat::Fields fields;
    std::size_t piece_size;
  };
  const Row rows[] = {
      {{512, 8, separate, type_1}, 512},
      {{4096, 8, extended, type_1}, 4096},
      {{4096, 64, separate, type_1}, 4096},
      {{4096, 8, separate, type_1}, 1000},  // pieces that are no multiple of 16 bytes
      {{512, 8, separate, type_1}, 100},
      {{4096, 16, separate, type_1, last, guard_32b, 16}, 4096},
      {{4096, 16, separate, type_1, last, guard_64b}, 4096},
      {{4096, 16, separate, type_1, last, guard_64b}, 1001},
  };
  Random random(test_seed());
  for (const Row& row : rows) {
    CAPTURE(describe(row.fields));
    CAPTURE(row.piece_size);
    const PiFormat format = make_format(row.fields);
    Source source(random, format, {}, 8);
    Bytes data(8ull * row.fields.data_size);
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < data.size(); at += row.piece_size) {
      pieces.push_back({data.data() + at, std::min(row.piece_size, data.size() - at)});
    }
    VerifyCounts counts;
    {
      const Mutator mutator{std::span<std::byte>(data)};
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
      while (std::chrono::steady_clock::now() < end) {
        counts += verify_and_copy(format, {}, source.blocks.blocks(),
                                  {UserMemory(std::span<const iovec>(pieces)), {}});
      }
    }
    CHECK(counts.mismatched == 0);
    CHECK(counts.verified > 0);
  }
}

TEST_SUITE_END();
