// remap(): other tags in tuples that exist, and not one byte more. Expected bytes are written out,
// or put together bit by bit by the reference.
#include "pi/remap.h"

#include <doctest/doctest.h>

#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

PiFormat format_of(GuardType guard, unsigned sts, PiType type = type_1) {
  return make_format({4096, 16, separate, type, first, guard, sts});
}

void set_pi(BlockBuffer& blocks, std::uint32_t i, const Bytes& tuple) {
  std::copy(tuple.begin(), tuple.end(), blocks.pi(i).begin());
}

// The tuples of one run after remap(), as hexadecimal digits.
std::vector<std::string> remapped(const PiFormat& format, const std::vector<std::string>& tuples,
                                  const PiRemap& changes) {
  BlockBuffer blocks(format, static_cast<std::uint32_t>(tuples.size()));
  for (std::uint32_t i = 0; i < blocks.count(); ++i) set_pi(blocks, i, from_hex(tuples[i]));
  remap(format, changes, blocks.blocks());
  std::vector<std::string> result;
  for (std::uint32_t i = 0; i < blocks.count(); ++i) result.push_back(hex(blocks.pi(i)));
  return result;
}

using Tuples = std::vector<std::string>;

// Random bytes everywhere: data, metadata and guards need not fit each other, remap() must not
// care.
BlockBuffer random_blocks(Random& random, const PiFormat& format, std::uint32_t count) {
  BlockBuffer blocks(format, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Bytes data = random_bytes(random, format.data_size());
    const Bytes metadata = random_bytes(random, format.metadata_size());
    std::copy(data.begin(), data.end(), blocks.data(i).begin());
    std::copy(metadata.begin(), metadata.end(), blocks.metadata(i).begin());
  }
  return blocks;
}

}  // namespace

TEST_SUITE_BEGIN("remap");

TEST_CASE(
    "remap of the reference tag counts from the new address and rolls over at its own width") {
  // Guard, application tag and storage tag stay: ABCD; C3, 1ABC, 2C0DE, BEEF, 5DEADBEEF.
  CHECK(remapped(format_of(guard_16b, 0), {"8f6dabcd00000010", "1234abcd00000011"},
                 {.initial_ref_tag = 0xFFFFFFFF}) ==
        Tuples{"8f6dabcdffffffff", "1234abcd00000000"});
  CHECK(remapped(format_of(guard_16b, 8), {"50bfabcdc3123456", "febcabcdc3123457"},
                 {.initial_ref_tag = 0xFFFFFF}) == Tuples{"50bfabcdc3ffffff", "febcabcdc3000000"});
  CHECK(remapped(format_of(guard_16b, 13), {"ec7dabcdd5e00004", "cdc0abcdd5e00005"},
                 {.initial_ref_tag = 0x7FFFF}) == Tuples{"ec7dabcdd5e7ffff", "cdc0abcdd5e00000"});
  CHECK(remapped(format_of(guard_64b, 0),
                 {"0123456789abcdefabcd000000000001", "fedcba9876543210abcd000000000002"},
                 {.initial_ref_tag = 0xFFFFFFFFFFFF}) ==
        Tuples{"0123456789abcdefabcdffffffffffff", "fedcba9876543210abcd000000000000"});
  CHECK(remapped(format_of(guard_64b, 18),
                 {"0123456789abcdefabcdb03780000007", "fedcba9876543210abcdb03780000008"},
                 {.initial_ref_tag = 0x3FFFFFFF}) ==
        Tuples{"0123456789abcdefabcdb037bfffffff", "fedcba9876543210abcdb03780000000"});
  CHECK(remapped(format_of(guard_32b, 16),
                 {"9c71fe32abcdbeef0000000000000001", "9c71fe33abcdbeef0000000000000002"},
                 {.initial_ref_tag = 0xFFFFFFFFFFFFFFFF}) ==
        Tuples{"9c71fe32abcdbeefffffffffffffffff", "9c71fe33abcdbeef0000000000000000"});
  CHECK(remapped(format_of(guard_32b, 35),
                 {"9c71fe32abcdbbd5b7dde00000000005", "9c71fe33abcdbbd5b7dde00000000006"},
                 {.initial_ref_tag = 0x1FFFFFFFFFFF}) ==
        Tuples{"9c71fe32abcdbbd5b7ddffffffffffff", "9c71fe33abcdbbd5b7dde00000000000"});
}

TEST_CASE("remap of the storage or the application tag leaves the reference tags alone") {
  CHECK(remapped(format_of(guard_16b, 8), {"50bf1111c3123456", "febc2222c4999999"},
                 {.storage_tag = 0x5A}) == Tuples{"50bf11115a123456", "febc22225a999999"});
  CHECK(remapped(format_of(guard_16b, 8), {"50bf1111c3123456", "febc2222c4999999"},
                 {.app_tag = 0xABCD}) == Tuples{"50bfabcdc3123456", "febcabcdc4999999"});
  CHECK(remapped(format_of(guard_64b, 48), {"0123456789abcdef1111665544332211"},
                 {.app_tag = 0xABCD, .storage_tag = 0x112233445566}) ==
        Tuples{"0123456789abcdefabcd112233445566"});
  CHECK(remapped(format_of(guard_32b, 64), {"9c71fe321111ffffffffffffffff0007"},
                 {.storage_tag = 0x0123456789ABCDEF}) ==
        Tuples{"9c71fe3211110123456789abcdef0007"});
}

TEST_CASE("remap gives every block of type 3 the same reference tag") {
  CHECK(remapped(format_of(guard_16b, 0, type_3), {"8f6dabcd00000010", "1234abcd00000011"},
                 {.initial_ref_tag = 0xDEADBEEF}) ==
        Tuples{"8f6dabcddeadbeef", "1234abcddeadbeef"});
}

TEST_CASE("remap cuts tags that are too large to their sizes") {
  CHECK(remapped(format_of(guard_16b, 8), {"50bf1111c3123456"},
                 {.storage_tag = 0xF5A, .initial_ref_tag = 0xAB123456}) ==
        Tuples{"50bf11115a123456"});
}

TEST_CASE("remap leaves unprotected blocks as they are and counts them apart") {
  const PiFormat format = make_format({512, 8, extended, type_1});
  const char* const tuples[] = {"8f6dabcd00000010", "0000ffff00000011", "1234000000000012"};
  BlockBuffer blocks(format, 3);
  for (std::uint32_t i = 0; i < 3; ++i) set_pi(blocks, i, from_hex(tuples[i]));
  const RemapCounts counts =
      remap(format, {.app_tag = 0x5555, .initial_ref_tag = 0x100}, blocks.blocks());
  CHECK(counts.remapped == 2);
  CHECK(counts.unprotected == 1);
  CHECK(hex(blocks.pi(0)) == "8f6d555500000100");
  CHECK(hex(blocks.pi(1)) == "0000ffff00000011");
  CHECK(hex(blocks.pi(2)) == "1234555500000102");  // the unprotected block has its number, too
}

TEST_CASE("remap of type 3 takes application tag FFFFh for an escape only with the reference tag") {
  const PiFormat format = format_of(guard_16b, 0, type_3);
  CHECK(remapped(format, {"1234ffffffffffff", "1234ffff00000001"}, {.initial_ref_tag = 7}) ==
        Tuples{"1234ffffffffffff", "1234ffff00000007"});
}

TEST_CASE("remap changes the tags that it is given and no other byte, in any format") {
  Random random(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    const PiFormat::Fields& fields = format.fields();
    CAPTURE(round);
    CAPTURE(describe(format));
    const auto count = static_cast<std::uint32_t>(1 + below(random, 5));
    const PiTags old_tags = random_tags(random, format), new_tags = random_tags(random, format);
    PiRemap changes;
    if (coin(random)) changes.app_tag = new_tags.app_tag;
    if (coin(random)) changes.storage_tag = new_tags.storage_tag;
    if (coin(random)) changes.initial_ref_tag = new_tags.initial_ref_tag;
    const PiTags expected_tags{
        .app_tag = changes.app_tag ? new_tags.app_tag : old_tags.app_tag,
        .storage_tag = changes.storage_tag ? new_tags.storage_tag : old_tags.storage_tag,
        .initial_ref_tag =
            changes.initial_ref_tag ? new_tags.initial_ref_tag : old_tags.initial_ref_tag};

    BlockBuffer blocks = random_blocks(random, format, count);
    BlockBuffer expected = blocks;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto tuple = [&](const PiTags& tags, std::uint64_t guard) {
        PiTuple t = reference_tuple_of(fields, tags, i, blocks.data(i), blocks.metadata(i));
        t.guard = guard;
        return reference_tuple(fields, t);
      };
      const std::uint64_t guard = random() & low_bits(8 * guard_size(fields.guard));
      set_pi(blocks, i, tuple(old_tags, guard));
      set_pi(expected, i, tuple(expected_tags, guard));
    }
    CHECK(remap(format, changes, blocks.blocks()).remapped == count);
    REQUIRE(hex(blocks.raw_data()) == hex(expected.raw_data()));
    REQUIRE(hex(blocks.raw_metadata()) == hex(expected.raw_metadata()));
  }
}

TEST_CASE("blocks that are remapped verify at their new address and no more at the old one") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields);
    if (!format.has_pi() || format.type() == type_3 || format.ref_tag_size() == 0) continue;
    CAPTURE(describe(format));
    BlockBuffer blocks = random_blocks(random, format, 4);
    const Expectation here{.tags = {.app_tag = 1, .initial_ref_tag = 100}, .checks = {}};
    const Expectation there{.tags = {.app_tag = 1, .initial_ref_tag = 3}, .checks = {}};
    generate(format, here.tags, blocks.blocks());
    CHECK(verify(format, here, blocks.blocks()).verified == 4);
    CHECK(remap(format, {.initial_ref_tag = 3}, blocks.blocks()).remapped == 4);
    CHECK(verify(format, there, blocks.blocks()).verified == 4);
    CHECK(verify(format, here, blocks.blocks()).mismatched == 4);
  }
}

TEST_SUITE_END();
