// The bytes of tuples, and which tuples switch checking off.
#include "pi/tuple.h"

#include <doctest/doctest.h>

#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

PiFormat format_of(GuardType guard, unsigned sts, PiType type = type_1) {
  return make_format({4096, 16, separate, type, last, guard, sts});
}

Bytes encoded(const PiFormat& format, const PiTuple& tuple) {
  Bytes bytes(format.pi_size(), std::byte{0xEE});
  encode_tuple(format, tuple, bytes.data());
  return bytes;
}

// NVM Command Set Specification 1.0, section 5.2.1.4: guard, application tag, then the storage tag
// in the most significant bits of the rest.
struct Row {
  GuardType guard;
  unsigned sts;
  PiTuple tuple;
  const char* bytes;
};
constexpr Row rows[] = {
    {guard_16b, 0, {0x8F6D, 0xABCD, 0, 0x23456789}, "8f6dabcd23456789"},
    {guard_16b, 8, {0x50BF, 0x1111, 0xC3, 0x123456}, "50bf1111c3123456"},
    {guard_16b, 13, {0xEC7D, 0x1111, 0x1ABC, 0x7FFFF}, "ec7d1111d5e7ffff"},
    {guard_16b, 13, {0xCDC0, 0x1111, 0x1ABC, 0}, "cdc01111d5e00000"},
    {guard_16b, 32, {0, 0x1111, 0xCAFEF00D, 0}, "00001111cafef00d"},
    {guard_64b, 0, {1, 0xABCD, 0, 0x456789ABCDEF}, "0000000000000001abcd456789abcdef"},
    {guard_64b, 16, {1, 0xABCD, 0xBEEF, 0x23456789}, "0000000000000001abcdbeef23456789"},
    {guard_64b, 18, {1, 0xABCD, 0x2C0DE, 0x3FFFFFFF}, "0000000000000001abcdb037bfffffff"},
    {guard_64b, 18, {1, 0xABCD, 0x2C0DE, 0}, "0000000000000001abcdb03780000000"},
    {guard_64b, 48, {~0ull, 0xABCD, 0x112233445566, 0}, "ffffffffffffffffabcd112233445566"},
    {guard_32b,
     16,
     {0x9C71FE32, 0xABCD, 0xBEEF, 0x1122334455667788},
     "9c71fe32abcdbeef1122334455667788"},
    {guard_32b, 32, {0, 0xABCD, 0xDEADBEEF, 0x123456789ABC}, "00000000abcddeadbeef123456789abc"},
    {guard_32b, 35, {0, 0xABCD, 0x5DEADBEEF, 0x1FFFFFFFFFFF}, "00000000abcdbbd5b7ddffffffffffff"},
    {guard_32b, 35, {0, 0xABCD, 0x5DEADBEEF, 0}, "00000000abcdbbd5b7dde00000000000"},
    {guard_32b, 64, {0, 0xABCD, 0x0123456789ABCDEF, 0xFFFF}, "00000000abcd0123456789abcdefffff"},
};

}  // namespace

TEST_SUITE_BEGIN("tuple");

TEST_CASE("a tuple is big endian, with the storage tag above the reference tag") {
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    const PiFormat format = format_of(row.guard, row.sts);
    CHECK(hex(encoded(format, row.tuple)) == row.bytes);
    CHECK(decode_tuple(format, from_hex(row.bytes).data()) == row.tuple);
  }
}

TEST_CASE("R21: the reference tag 02000000h is stored most significant byte first") {
  const PiFormat format = make_format({4096, 8, separate, type_1});
  CHECK(hex(encoded(format, {0x8F6D, 0x1234, 0, 0x02000000})) == "8f6d123402000000");
}

TEST_CASE("any tuple of any format decodes to what was encoded, bit by bit where it belongs") {
  Random random(test_seed());
  for (int round = 0; round < 5000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    const unsigned guard_bits = 8 * guard_size(format.guard());
    const PiTuple tuple{.guard = random() & low_bits(guard_bits),
                        .app_tag = static_cast<std::uint16_t>(random()),
                        .storage_tag = random() & format.storage_tag_max(),
                        .ref_tag = random() & format.ref_tag_max()};
    CAPTURE(round);
    const Bytes bytes = reference_tuple(format.fields(), tuple);
    REQUIRE(hex(encoded(format, tuple)) == hex(bytes));
    REQUIRE(decode_tuple(format, bytes.data()) == tuple);
  }
}

TEST_CASE("tags that are too large are cut and never spill into their neighbours") {
  const PiFormat format = format_of(guard_16b, 8);
  CHECK(hex(encoded(format, {0x1ABCD, 0x1111, 0x1C3, 0xFF123456})) == "abcd1111c3123456");
}

TEST_CASE("application tag FFFFh switches types 1 and 2 off - type 3 needs the reference tag too") {
  struct Case {
    PiType type;
    GuardType guard;
    unsigned sts;
    PiTuple tuple;
    bool escapes;
  };
  const std::uint64_t ones = ~0ull;
  const Case cases[] = {
      {type_1, guard_16b, 0, {0xDEAD, 0xFFFF, 0, 0}, true},
      {type_2, guard_16b, 0, {0xDEAD, 0xFFFF, 0, 5}, true},
      {type_1, guard_16b, 0, {0xFFFF, 0xFFFE, 0, 0xFFFFFFFF}, false},
      {type_1, guard_16b, 0, {0xFFFF, 0, 0, 0xFFFFFFFF}, false},
      {type_3, guard_16b, 0, {0, 0xFFFF, 0, 0xFFFFFFFF}, true},
      {type_3, guard_16b, 0, {0, 0xFFFF, 0, 0}, false},
      {type_3, guard_16b, 0, {0, 0xFFFF, 0, 0x7FFFFFFF}, false},
      {type_3, guard_16b, 0, {0, 0x1234, 0, 0xFFFFFFFF}, false},
      // Only the reference tag's own bits count, whatever the storage tag is.
      {type_3, guard_16b, 13, {0, 0xFFFF, 0, 0x7FFFF}, true},
      {type_3, guard_16b, 13, {0, 0xFFFF, 0x1FFF, 0x3FFFF}, false},
      {type_3, guard_16b, 32, {0, 0xFFFF, 0, 0}, true},
      {type_3, guard_64b, 0, {0, 0xFFFF, 0, 0xFFFFFFFFFFFF}, true},
      {type_3, guard_64b, 16, {0, 0xFFFF, 0, 0xFFFFFFFF}, true},
      {type_3, guard_64b, 16, {0, 0xFFFF, 0xFFFF, 0xFFFFFFFE}, false},
      {type_3, guard_64b, 48, {0, 0xFFFF, 0, 0}, true},
      {type_3, guard_32b, 16, {0, 0xFFFF, 0, ones}, true},
      {type_3, guard_32b, 64, {0, 0xFFFF, 0, 0xFFFF}, true},
      {type_3, guard_32b, 64, {0, 0xFFFF, ones, 0xFFFE}, false},
  };
  for (const Case& c : cases) {
    CAPTURE(describe(PiFormat::Fields{4096, 16, separate, c.type, last, c.guard, c.sts}));
    CAPTURE(c.tuple.ref_tag);
    CHECK(is_escape(format_of(c.guard, c.sts, c.type), c.tuple) == c.escapes);
  }
}

TEST_SUITE_END();
