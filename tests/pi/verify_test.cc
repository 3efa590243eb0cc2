// verify(): which blocks fail, with which tag, and which are no business of the check at all.
#include <doctest/doctest.h>

#include <optional>

#include "pi/protect.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

void set_tuple(const PiFormat& format, BlockBuffer& blocks, std::uint32_t i, const PiTuple& tuple) {
  const Bytes bytes = reference_tuple(format.fields(), tuple);
  std::copy(bytes.begin(), bytes.end(), blocks.pi(i).begin());
}

// Random blocks with the tuples that belong to `tags`, made by the reference.
BlockBuffer good_blocks(Random& random, const PiFormat& format, const PiTags& tags,
                        std::uint32_t count) {
  BlockBuffer blocks(format, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Bytes data = random_bytes(random, format.data_size());
    const Bytes metadata = random_bytes(random, format.metadata_size());
    std::copy(data.begin(), data.end(), blocks.data(i).begin());
    std::copy(metadata.begin(), metadata.end(), blocks.metadata(i).begin());
    set_tuple(format, blocks, i, reference_tuple_of(format.fields(), tags, i, data, metadata));
  }
  return blocks;
}

struct Seen {
  std::vector<PiMismatch> mismatches;
  std::size_t stop_after = ~std::size_t{0};
  bool operator()(const PiMismatch& mismatch) {
    mismatches.push_back(mismatch);
    return mismatches.size() < stop_after;
  }
};

// Damages block i in one of the ways that checks must find. Nothing if this format has no such tag.
std::optional<PiTag> damage(Random& random, const PiFormat& format, BlockBuffer& blocks,
                            std::uint32_t i) {
  PiTuple tuple = decode_tuple(format, blocks.pi(i).data());
  switch (below(random, 5)) {
    case 0:
      blocks.data(i)[below(random, format.data_size())] ^= std::byte{0x10};
      return PiTag::guard;
    case 1:
      if (format.guarded_metadata_size() == 0) return {};
      blocks.metadata(i)[below(random, format.guarded_metadata_size())] ^= std::byte{1};
      return PiTag::guard;
    case 2:
      tuple.app_tag = static_cast<std::uint16_t>(tuple.app_tag ^ 1);
      if (tuple.app_tag == escape_app_tag) return {};
      set_tuple(format, blocks, i, tuple);
      return PiTag::app_tag;
    case 3: {
      if (format.storage_tag_mask() == 0) return {};
      tuple.storage_tag ^= format.storage_tag_mask() & (~format.storage_tag_mask() + 1);
      set_tuple(format, blocks, i, tuple);
      return PiTag::storage_tag;
    }
    default:
      if (format.ref_tag_size() == 0 || format.type() == type_3) return {};
      tuple.ref_tag ^= 1ull << below(random, format.ref_tag_size());
      set_tuple(format, blocks, i, tuple);
      return PiTag::ref_tag;
  }
}

}  // namespace

TEST_SUITE_BEGIN("verify");

TEST_CASE("every failing block is reported in order, with its tag - the others are verified") {
  Random random(test_seed());
  for (int round = 0; round < 3000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    CAPTURE(round);
    CAPTURE(describe(format));
    const PiTags tags = random_tags(random, format);
    const auto count = static_cast<std::uint32_t>(1 + below(random, 8));
    BlockBuffer blocks = good_blocks(random, format, tags, count);
    std::vector<std::pair<std::uint32_t, PiTag>> expected;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (below(random, 3) != 0) continue;
      if (const auto tag = damage(random, format, blocks, i)) expected.emplace_back(i, *tag);
    }
    const Bytes before = blocks.raw_data();
    const std::uint64_t first_lba = random() >> 8;
    Seen seen;
    const VerifyCounts counts =
        verify(format, {.tags = tags, .first_lba = first_lba}, blocks.blocks(), seen);
    REQUIRE(seen.mismatches.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const PiMismatch& mismatch = seen.mismatches[k];
      REQUIRE(mismatch.block_index == expected[k].first);
      REQUIRE(mismatch.lba == first_lba + expected[k].first);
      REQUIRE(mismatch.tag == expected[k].second);
      REQUIRE(mismatch.stored != mismatch.computed);
      REQUIRE(reference_tuple(format.fields(), mismatch.tuple) ==
              copy_of(blocks.pi(expected[k].first)));
    }
    REQUIRE(counts.mismatched == expected.size());
    REQUIRE(counts.verified == count - expected.size());
    REQUIRE(counts.unprotected == 0);
    REQUIRE(blocks.raw_data() == before);
  }
}

TEST_CASE("a mismatch carries what is stored and what was computed") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, extended, type_1, last, guard_16b, 8});
  const PiTags tags{.app_tag = 0x1234, .storage_tag = 0xC3, .initial_ref_tag = 0xFFFFFF};
  BlockBuffer blocks = good_blocks(random, format, tags, 4);
  const std::uint64_t guard_of_2 = reference_guard(guard_16b, blocks.data(2));
  set_tuple(format, blocks, 0,
            {reference_guard(guard_16b, blocks.data(0)), 0x1235, 0xC3, 0xFFFFFF});
  set_tuple(format, blocks, 1, {reference_guard(guard_16b, blocks.data(1)), 0x1234, 0xC2, 0});
  set_tuple(format, blocks, 2, {guard_of_2 ^ 1, 0x9999, 0x11, 7});  // all wrong: the guard is told
  set_tuple(format, blocks, 3, {reference_guard(guard_16b, blocks.data(3)), 0x1234, 0xC3, 9});
  Seen seen;
  verify(format, {.tags = tags, .first_lba = 0xFFFFFF}, blocks.blocks(), seen);
  struct Row {
    PiTag tag;
    std::uint64_t stored, computed;
  };
  const Row rows[] = {{PiTag::app_tag, 0x1235, 0x1234},
                      {PiTag::storage_tag, 0xC2, 0xC3},
                      {PiTag::guard, guard_of_2 ^ 1, guard_of_2},
                      {PiTag::ref_tag, 9, 2}};
  REQUIRE(seen.mismatches.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(seen.mismatches[i].tag == rows[i].tag);
    CHECK(seen.mismatches[i].stored == rows[i].stored);
    CHECK(seen.mismatches[i].computed == rows[i].computed);
    CHECK(seen.mismatches[i].lba == 0xFFFFFF + i);
  }
}

TEST_CASE("a failing block is handed over with all it takes to check it once more") {
  Random random(test_seed());
  for (int round = 0; round < 500; ++round) {
    const PiFormat format = make_format(random_fields(random));
    CAPTURE(round);
    CAPTURE(describe(format));
    const PiTags tags = random_tags(random, format);
    BlockBuffer blocks = good_blocks(random, format, tags, 6);
    for (const std::uint32_t i : {1, 4}) blocks.data(i)[below(random, 512)] ^= std::byte{0x20};
    const std::uint64_t first_lba = random() >> 8;
    std::vector<std::uint32_t> failed;
    const auto again = [&](const PiMismatch& mismatch, const FailedBlock& block) {
      const std::uint32_t i = mismatch.block_index;
      failed.push_back(i);
      CHECK(copy_of(block.data) == copy_of(blocks.data(i)));
      CHECK(copy_of(block.metadata) == copy_of(blocks.metadata(i)));
      BlockBuffer alone(format, 1);
      std::copy(block.data.begin(), block.data.end(), alone.data(0).begin());
      std::copy(block.metadata.begin(), block.metadata.end(), alone.metadata(0).begin());
      Seen seen;
      verify(format, block.expected, alone.blocks(), seen);
      REQUIRE(seen.mismatches.size() == 1);
      CHECK(seen.mismatches[0].lba == mismatch.lba);
      CHECK(seen.mismatches[0].tag == mismatch.tag);
      CHECK(seen.mismatches[0].computed == mismatch.computed);
      // The other tags are as expected, too: with a guard that fits nothing is wrong with the block.
      PiTuple tuple = mismatch.tuple;
      tuple.guard = mismatch.computed;
      set_tuple(format, alone, 0, tuple);
      CHECK(verify(format, block.expected, alone.blocks()).mismatched == 0);
      return true;
    };
    verify(format, {.tags = tags, .first_lba = first_lba}, blocks.blocks(), again);
    CHECK(failed == std::vector<std::uint32_t>{1, 4});
  }
}

TEST_CASE("a sink that says stop ends the check there") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_1});
  BlockBuffer blocks = good_blocks(random, format, {}, 8);
  for (const std::uint32_t i : {1, 3, 6}) blocks.data(i)[0] ^= std::byte{1};
  Seen seen{.mismatches = {}, .stop_after = 2};
  const VerifyCounts counts = verify(format, {}, blocks.blocks(), seen);
  CHECK(seen.mismatches.size() == 2);
  CHECK(counts.mismatched == 2);
  CHECK(counts.verified == 2);  // blocks 0 and 2; 4 to 7 were not looked at
}

TEST_CASE("an escaped block is counted as unprotected and hides no bad block behind it") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    if (fields.type == none) continue;
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    BlockBuffer blocks = good_blocks(random, format, {}, 5);
    set_tuple(format, blocks, 0, {0xDEAD, 0xFFFF, 0, format.ref_tag_max()});
    blocks.data(3)[7] ^= std::byte{0x80};
    Seen seen;
    const VerifyCounts counts = verify(format, {}, blocks.blocks(), seen);
    CHECK(counts.unprotected == 1);
    CHECK(counts.mismatched == 1);
    CHECK(counts.verified == 3);
    REQUIRE(seen.mismatches.size() == 1);
    CHECK(seen.mismatches[0].block_index == 3);
  }
}

TEST_CASE("R16: an escape holds even if application tag FFFFh is expected, or nothing is checked") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_1});
  BlockBuffer blocks = good_blocks(random, format, {.app_tag = 0xFFFF}, 3);
  CHECK(verify(format, {.tags = {.app_tag = 0xFFFF}}, blocks.blocks()).unprotected == 3);
  CHECK(verify(format, {.checks = PiChecks::none()}, blocks.blocks()).unprotected == 3);
}

TEST_CASE("R16: type 3 with application tag FFFFh and reference tag 0 is checked") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_3});
  BlockBuffer blocks = good_blocks(random, format, {.app_tag = 0xFFFF}, 2);
  blocks.data(1)[0] ^= std::byte{1};
  const VerifyCounts counts = verify(format, {.tags = {.app_tag = 0xFFFF}}, blocks.blocks());
  CHECK(counts.verified == 1);
  CHECK(counts.mismatched == 1);
}

TEST_CASE("without PI in the format every block is unprotected") {
  const PiFormat format = make_format({512, 8, extended, none});
  BlockBuffer blocks(format, 7);
  CHECK(verify(format, {}, blocks.blocks()).unprotected == 7);
}

TEST_CASE("a check that is switched off finds nothing, and hides nothing that the others find") {
  Random random(test_seed());
  for (unsigned subset = 0; subset < 16; ++subset) {
    const PiChecks checks{.guard = (subset & 1) != 0,
                          .app_tag = (subset & 2) != 0,
                          .storage_tag = (subset & 4) != 0,
                          .ref_tag = (subset & 8) != 0};
    CAPTURE(subset);
    const PiFormat format = make_format({4096, 16, separate, type_2, last, guard_64b, 16});
    BlockBuffer blocks = good_blocks(random, format, {}, 1);
    PiTuple tuple = decode_tuple(format, blocks.pi(0).data());
    set_tuple(format, blocks, 0, {tuple.guard ^ 1, 1, 1, 1});
    Seen seen;
    const VerifyCounts counts = verify(format, {.checks = checks}, blocks.blocks(), seen);
    CHECK(counts.mismatched == (subset == 0 ? 0 : 1));
    if (subset == 0) continue;
    const PiTag first = checks.guard         ? PiTag::guard
                        : checks.app_tag     ? PiTag::app_tag
                        : checks.storage_tag ? PiTag::storage_tag
                                             : PiTag::ref_tag;
    REQUIRE(seen.mismatches.size() == 1);
    CHECK(seen.mismatches[0].tag == first);
  }
}

TEST_CASE("only the bits of the application tag mask are compared") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_1});
  BlockBuffer blocks = good_blocks(random, format, {.app_tag = 0x1234}, 1);
  for (unsigned bit = 0; bit < 16; ++bit) {
    CAPTURE(bit);
    const auto flip = static_cast<std::uint16_t>(1u << bit);
    PiTags tags{.app_tag = static_cast<std::uint16_t>(0x1234 ^ flip), .app_tag_mask = flip};
    CHECK(verify(format, {.tags = tags}, blocks.blocks()).mismatched == 1);
    tags.app_tag_mask = static_cast<std::uint16_t>(~flip);
    CHECK(verify(format, {.tags = tags}, blocks.blocks()).verified == 1);
  }
}

TEST_CASE("the reference tag of type 3 is never compared") {
  Random random(test_seed());
  const PiFormat format = make_format({512, 8, separate, type_3});
  BlockBuffer blocks = good_blocks(random, format, {.initial_ref_tag = 7}, 3);
  CHECK(verify(format, {.tags = {.initial_ref_tag = 99}}, blocks.blocks()).verified == 3);
}

TEST_SUITE_END();
