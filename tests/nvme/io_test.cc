// What an I/O may ask for, how it is split, and what becomes of its tags. NVM Command Set
// Specification 1.0, section 5.2.
#include "nvme/io.h"

#include <doctest/doctest.h>

#include <string>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

Bytes space(1u << 20);

UserMemory memory_of_size(std::size_t size) {
  return memory_of(space).subview(0, size);
}

}  // namespace

TEST_SUITE_BEGIN("io");

TEST_CASE("check_io refuses each misuse with its code and its values") {
  const PiFormat::Fields plain{512, 8, separate, type_1};
  struct Row {
    const char* name;
    PiFormat::Fields fields;
    Io io;
    Errc code;
    const char* field;
    std::uint64_t value, limit;
  };
  const auto io = [](std::uint64_t slba, std::uint64_t count, std::size_t data,
                     std::size_t metadata = 0) {
    return Io{.opcode = Opcode::write,
              .slba = slba,
              .block_count = count,
              .memory = {memory_of_size(data), memory_of_size(metadata)}};
  };
  const auto with = [](Io base, auto change) {
    change(base);
    return base;
  };
  const auto zero_copy = [](Io& i) { i.mode = TransferMode::zero_copy; };
  const iovec cut[] = {{space.data(), 100}, {space.data() + 200, 412}};
  const Row rows[] = {
      {"nothing", plain, io(0, 0, 0), Errc::no_blocks, "", 0, 0},
      {"behind the end", plain, io(1000, 1, 512), Errc::out_of_range, "", 1000, 999},
      {"across the end", plain, io(998, 3, 1536), Errc::out_of_range, "", 1000, 999},
      {"data short", plain, io(0, 2, 1023), Errc::wrong_length, "data", 1023, 1024},
      {"data long", plain, io(0, 2, 1040), Errc::wrong_length, "data", 1040, 1024},
      {"no data", plain, io(0, 2, 0), Errc::wrong_length, "data", 0, 1024},
      {"R01", plain, io(0, 11, 5632, 8), Errc::wrong_length, "metadata", 8, 88},
      {"metadata of none",
       {512, 0, separate, none},
       io(0, 1, 512, 8),
       Errc::wrong_length,
       "metadata",
       8,
       0},
      {"R50: metadata that PRACT hides", plain,
       with(io(0, 1, 512, 8), [](Io& i) { i.pi = PiOwner::device; }), Errc::wrong_length,
       "metadata", 8, 0},
      {"R04: zero-copy, extended",
       {512, 8, extended, type_1},
       with(io(0, 15, 7801), zero_copy),
       Errc::wrong_length,
       "data",
       7801,
       7800},
      {"zero-copy, extended, apart",
       {512, 8, extended, type_1},
       with(io(0, 1, 520, 8), zero_copy),
       Errc::wrong_length,
       "metadata",
       8,
       0},
      {"zero-copy in pieces", plain,
       with(io(0, 1, 512),
            [&](Io& i) {
              zero_copy(i);
              i.memory.data = UserMemory(std::span<const iovec>(cut));
            }),
       Errc::not_contiguous, "data", 0, 0},
      {"zero-copy, unaligned", plain,
       with(io(0, 1, 512),
            [&](Io& i) {
              zero_copy(i);
              i.memory.data = memory_of(space).subview(2, 512);
            }),
       Errc::unaligned, "data", 0, 4},
      {"zero-copy, unaligned metadata", plain,
       with(io(0, 1, 512, 8),
            [&](Io& i) {
              zero_copy(i);
              i.memory.metadata = memory_of(space).subview(1025, 8);
            }),
       Errc::unaligned, "metadata", 0, 4},
      {"R23: storage tag",
       {512, 8, separate, type_1, last, guard_16b, 8},
       with(io(0, 1, 512), [](Io& i) { i.storage_tag = 0x100; }),
       Errc::tag_too_large,
       "storage tag",
       0x100,
       0xFF},
      {"R23: a storage tag without room", plain,
       with(io(0, 1, 512), [](Io& i) { i.storage_tag = 1; }), Errc::tag_too_large, "storage tag", 1,
       0},
      {"R23: reference tag",
       {4096, 16, separate, type_2, last, guard_64b, 16},
       with(io(0, 1, 4096), [](Io& i) { i.ref_tag = 0x100000000; }),
       Errc::tag_too_large,
       "reference tag",
       0x100000000,
       0xFFFFFFFF},
      {"R23: a reference tag without room",
       {4096, 16, separate, type_2, last, guard_64b, 48},
       with(io(0, 1, 4096), [](Io& i) { i.ref_tag = 1; }),
       Errc::tag_too_large,
       "reference tag",
       1,
       0},
      {"R20: type 1", plain, with(io(100, 1, 512), [](Io& i) { i.ref_tag = 101; }),
       Errc::ref_tag_conflict, "", 101, 100},
      {"R16: FFFFh", plain, with(io(0, 1, 512), [](Io& i) { i.app_tag = 0xFFFF; }),
       Errc::unprotecting_app_tag, "", 0xFFFF, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto result = check_io(row.io, geometry_of(make_format(row.fields), 1000));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == row.code);
    CHECK(std::string(result.error().field) == row.field);
    CHECK(result.error().value == row.value);
    CHECK(result.error().limit == row.limit);
  }
}

TEST_CASE("check_io lets pass what is unusual but right") {
  const auto passes = [](const PiFormat::Fields& fields, Io io) {
    io.opcode = io.opcode == Opcode::flush ? Opcode::read : io.opcode;
    if (io.memory.data.empty()) io.memory.data = memory_of_size(fields.data_size);
    io.block_count = 1;
    return check_io(io, geometry_of(make_format(fields), 1000)).has_value();
  };
  const PiFormat::Fields plain{512, 8, separate, type_1};
  const PiFormat::Fields type_3_fields{512, 8, separate, type_3};
  CHECK(passes(plain, {.slba = 999}));
  CHECK(passes(plain, {.slba = 100, .ref_tag = 100}));
  CHECK(passes({512, 8, separate, type_2}, {.slba = 100, .ref_tag = 0xFFFFFFFF}));
  CHECK(passes(type_3_fields, {.slba = 100, .ref_tag = 7}));
  CHECK(passes(plain, {.app_tag = 0xFFFF}));  // a read
  CHECK(passes(plain, {.opcode = Opcode::write, .app_tag = 0xFFFF, .allow_unprotected = true}));
  // R20: with every reference check off the field is ignored, if the caller brings the PI.
  CHECK(passes(plain, {.opcode = Opcode::write,
                       .slba = 100,
                       .pi = PiOwner::caller,
                       .device_checks = PiChecks::none(),
                       .ref_tag = 101}));
  CHECK_FALSE(passes(plain, {.opcode = Opcode::write,
                             .slba = 100,
                             .pi = PiOwner::caller,
                             .device_checks = {},
                             .ref_tag = 101}));
  CHECK(passes({512, 8, separate, none}, {.storage_tag = 99, .ref_tag = 99}));
}

TEST_CASE("R18, R20: the reference tag left out is the low bits of the address - 0 for type 3") {
  const std::uint64_t slba = 0x123456789ABCD;
  const auto tag = [&](PiType type, GuardType guard, unsigned sts) {
    const PiFormat format = make_format({4096, 16, separate, type, last, guard, sts});
    return tags_of({.slba = slba}, format).initial_ref_tag;
  };
  CHECK(tag(type_1, guard_16b, 0) == 0x6789ABCD);
  CHECK(tag(type_2, guard_16b, 8) == 0x89ABCD);
  CHECK(tag(type_1, guard_64b, 0) == 0x23456789ABCD);
  CHECK(tag(type_1, guard_64b, 16) == 0x6789ABCD);
  CHECK(tag(type_1, guard_32b, 16) == slba);
  CHECK(tag(type_1, guard_64b, 48) == 0);
  CHECK(tag(type_3, guard_16b, 0) == 0);
}

TEST_CASE("R20: only checks that the format knows are asked of the device") {
  const auto cdw12 = [](const PiFormat::Fields& fields, Io io = {}) {
    io.block_count = 1;
    return command_of(io, geometry_of(make_format(fields), 1000)).cdw12;
  };
  CHECK(cdw12({512, 8, separate, type_1}) == 0x1C000000);
  CHECK(cdw12({512, 8, separate, type_3}) == 0x18000000);
  CHECK(cdw12({512, 8, separate, type_1, last, guard_16b, 8}) == 0x1D000000);
  CHECK(cdw12({512, 8, separate, type_2, last, guard_16b, 32}) == 0x19000000);
  CHECK(cdw12({512, 8, separate, none}) == 0);
  CHECK(cdw12({512, 8, separate, type_1}, {.pi = PiOwner::device}) == 0x3C000000);
  CHECK(cdw12({512, 8, separate, type_1}, {.device_checks = PiChecks::none()}) == 0);
  CHECK(cdw12({512, 8, separate, none}, {.force_unit_access = true, .limited_retry = true}) ==
        0xC0000000);
}

TEST_CASE("a command takes tags, masks and its time-out from the I/O") {
  const PiFormat format = make_format({4096, 16, separate, type_2, last, guard_64b, 16});
  const Command command = command_of({.opcode = Opcode::write,
                                      .slba = 3,
                                      .block_count = 2,
                                      .app_tag = 0x1234,
                                      .app_tag_mask = 0x0FF0,
                                      .storage_tag = 0xABCD,
                                      .ref_tag = 0x12345678,
                                      .timeout_ms = 1234},
                                     geometry_of(format, 1000));
  CHECK(command.opcode == Opcode::write);
  CHECK(command.nsid == 7);
  CHECK(command.cdw15 == 0x0FF01234);
  CHECK(command.cdw14 == 0x12345678);
  CHECK(command.cdw3 == 0xABCD);
  CHECK(command.timeout_ms == 1234);
}

TEST_SUITE_END();
