// The checking factory of PiFormat: which formats no namespace may have, and what the legal ones
// say of themselves.
#include "pi/format.h"

#include <doctest/doctest.h>

#include <string>

#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

struct Refusal {
  PiFormat::Fields fields;
  const char* field;
  std::uint64_t value;
};

}  // namespace

TEST_SUITE_BEGIN("format");

TEST_CASE("an illegal format is refused, and the offending field named with its value") {
  const Refusal refusals[] = {
      {{0, 8, separate, type_1}, "ds", 0},
      {{256, 8, separate, type_1}, "ds", 256},
      {{520, 8, separate, type_1}, "ds", 520},
      {{4097, 0, separate, none}, "ds", 4097},
      {{6144, 0, extended, none}, "ds", 6144},
      {{2097152, 0, separate, none}, "ds", 2097152},
      {{4096, 65536, separate, none}, "ms", 65536},
      {{4096, 0, separate, type_1}, "ms", 0},
      {{4096, 7, extended, type_2}, "ms", 7},
      {{4096, 8, separate, type_1, last, guard_64b}, "ms", 8},
      {{4096, 15, extended, type_3, first, guard_64b}, "ms", 15},
      {{4096, 15, separate, type_1, last, guard_32b, 16}, "ms", 15},
      {{512, 16, separate, type_1, last, guard_64b}, "ds", 512},
      {{512, 16, extended, type_1, last, guard_64b}, "ds", 512},
      {{2048, 16, extended, type_1, last, guard_32b, 16}, "ds", 2048},
      {{4096, 8, separate, type_1, last, guard_16b, 33}, "sts", 33},
      {{4096, 16, separate, type_1, last, guard_32b, 0}, "sts", 0},
      {{4096, 16, separate, type_1, last, guard_32b, 15}, "sts", 15},
      {{4096, 16, separate, type_1, last, guard_32b, 65}, "sts", 65},
      {{4096, 16, separate, type_1, last, guard_64b, 49}, "sts", 49},
      {{4096, 8, separate, static_cast<PiType>(4)}, "pi", 4},
      {{4096, 8, separate, static_cast<PiType>(7)}, "pi", 7},
      {{4096, 16, separate, type_1, last, static_cast<GuardType>(3)}, "pif", 3},
  };
  for (const Refusal& refusal : refusals) {
    for (const MetadataLayout layout : {separate, extended}) {
      PiFormat::Fields fields = refusal.fields;
      fields.layout = layout;
      CAPTURE(refusal.field);
      CAPTURE(refusal.value);
      const auto format = PiFormat::create(fields);
      REQUIRE_FALSE(format.has_value());
      CHECK(std::string(format.error().field) == refusal.field);
      CHECK(format.error().value == refusal.value);
      CHECK_FALSE(format.error().rule.empty());
    }
  }
}

TEST_CASE("the storage tag takes its share of the reference tag, to the edges of its range") {
  struct Row {
    GuardType guard;
    unsigned sts, ref_tag_size;
  };
  const Row rows[] = {
      {guard_16b, 0, 32},  {guard_16b, 1, 31},  {guard_16b, 31, 1},  {guard_16b, 32, 0},
      {guard_32b, 16, 64}, {guard_32b, 17, 63}, {guard_32b, 63, 17}, {guard_32b, 64, 16},
      {guard_64b, 0, 48},  {guard_64b, 1, 47},  {guard_64b, 47, 1},  {guard_64b, 48, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.sts);
    const PiFormat format = make_format({4096, 16, separate, type_1, last, row.guard, row.sts});
    CHECK(format.storage_tag_size() == row.sts);
    CHECK(format.ref_tag_size() == row.ref_tag_size);
    CHECK(format.storage_tag_max() == low_bits(row.sts));
    CHECK(format.ref_tag_max() == low_bits(row.ref_tag_size));
    CHECK(format.storage_tag_mask() == low_bits(row.sts));
  }
}

TEST_CASE("bits of the storage tag mask above the storage tag are dropped") {
  const PiFormat format =
      make_format({4096, 16, separate, type_1, last, guard_64b, 16, 0xFFFFFFFFFFFFFFF0});
  CHECK(format.storage_tag_mask() == 0xFFF0);
}

TEST_CASE("the PI lies in the last or the first bytes of the metadata, and R14 is not inverted") {
  struct Row {
    std::uint32_t ms;
    GuardType guard;
    PiPosition position;
    unsigned sts, offset, size;
  };
  const Row rows[] = {
      {8, guard_16b, last, 0, 0, 8},    {8, guard_16b, first, 0, 0, 8},
      {64, guard_16b, last, 0, 56, 8},  {64, guard_16b, first, 0, 0, 8},
      {64, guard_64b, last, 0, 48, 16}, {64, guard_64b, first, 0, 0, 16},
      {16, guard_64b, last, 0, 0, 16},  {128, guard_32b, last, 16, 112, 16},
  };
  for (const Row& row : rows) {
    CAPTURE(row.ms);
    const PiFormat format =
        make_format({4096, row.ms, separate, type_1, row.position, row.guard, row.sts});
    CHECK(format.pi_offset() == row.offset);
    CHECK(format.guarded_metadata_size() == row.offset);
    CHECK(format.pi_size() == row.size);
  }
}

TEST_CASE("an extended layout without metadata is a separate one") {
  const PiFormat format = make_format({4096, 0, extended, none});
  CHECK_FALSE(format.extended());
  CHECK(format.data_stride() == 4096);
}

TEST_CASE("only the extended layout counts metadata into the distance between blocks") {
  CHECK(make_format({512, 8, separate, type_1}).data_stride() == 512);
  CHECK(make_format({512, 8, extended, type_1}).data_stride() == 520);
  CHECK(make_format({512, 8, extended, none}).data_stride() == 520);
}

TEST_CASE("without PI, guard and tag sizes are not looked at and do not tell formats apart") {
  const PiFormat format = make_format({512, 4, separate, none, first, guard_64b, 80, 0x1234});
  CHECK_FALSE(format.has_pi());
  CHECK(format.pi_offset() == 0);
  CHECK(format.ref_tag_max() == 0);
}

TEST_CASE("reference tags count and roll over at their own width - those of type 3 stay") {
  const PiFormat narrow = make_format({4096, 8, separate, type_2, last, guard_16b, 13});
  CHECK(narrow.ref_tag_at(0x7FFFF, 0) == 0x7FFFF);
  CHECK(narrow.ref_tag_at(0x7FFFF, 1) == 0);
  CHECK(narrow.ref_tag_at(0x7FFFF, 0x80001) == 0);
  const PiFormat plain = make_format({512, 8, separate, type_1});
  CHECK(plain.ref_tag_at(0xFFFFFFFF, 2) == 1);
  const PiFormat wide = make_format({4096, 16, separate, type_1, last, guard_32b, 16});
  CHECK(wide.ref_tag_at(~0ull, 1) == 0);
  const PiFormat no_ref_tag = make_format({4096, 16, separate, type_1, last, guard_64b, 48});
  CHECK(no_ref_tag.ref_tag_at(5, 7) == 0);
  const PiFormat constant = make_format({512, 8, separate, type_3});
  CHECK(constant.ref_tag_at(0xDEADBEEF, 9) == 0xDEADBEEF);
}

TEST_CASE("the same blocks can be seen without their PI or without their metadata") {
  const PiFormat format = make_format({4096, 64, extended, type_1, first, guard_64b, 16});
  CHECK_FALSE(format.without_pi().has_pi());
  CHECK(format.without_pi().data_stride() == 4160);
  CHECK_FALSE(format.without_metadata().has_pi());
  CHECK(format.without_metadata().metadata_size() == 0);
  CHECK(format.without_metadata().data_stride() == 4096);
}

TEST_SUITE_END();
