// Dwords and lengths of commands.
#include "nvme/command.h"

#include <doctest/doctest.h>

#include <string>

#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

PiFormat format_of(GuardType guard, unsigned sts) {
  return make_format({4096, 16, separate, type_2, last, guard, sts});
}

std::byte memory[1];  // check_command looks at no byte of it

Command command_for(const PiFormat& format, std::uint32_t blocks, bool pract) {
  Command command = make_io(Opcode::write, 1, 10, blocks);
  set_pi(command, format, {.pract = pract});
  const TransferLength length = transfer_length(format, blocks, pract);
  command.data_len = static_cast<std::uint32_t>(length.data);
  command.metadata_len = static_cast<std::uint32_t>(length.metadata);
  command.data = memory;
  command.metadata = length.metadata > 0 ? memory : nullptr;
  return command;
}

}  // namespace

TEST_SUITE_BEGIN("command");

TEST_CASE("a read or write carries its address, its 0's based length and its namespace") {
  const Command command = make_io(Opcode::read, 5, 0x123456789ABCDEF0, 65536);
  CHECK(command.opcode == Opcode::read);
  CHECK(command.nsid == 5);
  CHECK(command.cdw10 == 0x9ABCDEF0);
  CHECK(command.cdw11 == 0x12345678);
  CHECK(command.cdw12 == 0xFFFF);
  CHECK(command.slba() == 0x123456789ABCDEF0);
  CHECK(command.block_count() == 65536);
}

TEST_CASE("PRACT, PRCHK and STC are bits 29 to 26 and 24 of CDW12") {
  struct Row {
    std::uint32_t blocks;
    PiControl control;
    std::uint32_t cdw12;
  };
  const PiChecks all{};
  const Row rows[] = {
      {8, {.checks = all}, 0x1D000007},
      {8, {.pract = true}, 0x20000007},
      {1, {.checks = {.guard = true, .app_tag = false, .storage_tag = false}}, 0x14000000},
      {1,
       {.checks = {.guard = false, .app_tag = true, .storage_tag = false, .ref_tag = false}},
       0x08000000},
      {1,
       {.checks = {.guard = false, .app_tag = false, .storage_tag = true, .ref_tag = false}},
       0x01000000},
      {16, {.pract = true, .checks = all}, 0x3D00000F},
  };
  for (const Row& row : rows) {
    Command command = make_io(Opcode::write, 1, 0, row.blocks);
    set_pi(command, format_of(guard_64b, 16), row.control);
    CAPTURE(row.cdw12);
    CHECK(command.cdw12 == row.cdw12);
    CHECK(command.pract() == row.control.pract);
  }
}

TEST_CASE("R21, R23: tags go to CDW2, CDW3 and CDW14 as native integers") {
  struct Row {
    GuardType guard;
    unsigned sts;
    std::uint64_t storage, ref;
    std::uint32_t cdw2, cdw3, cdw14;
  };
  const Row rows[] = {
      {guard_16b, 0, 0, 0x23456789, 0, 0, 0x23456789},
      {guard_16b, 0, 0, 0x02000000, 0, 0, 0x02000000},
      {guard_16b, 8, 0xAB, 0x123456, 0, 0, 0xAB123456},
      {guard_16b, 13, 0x1ABC, 0x7FFFF, 0, 0, 0xD5E7FFFF},
      {guard_16b, 1, 1, 0x7FFFFFFF, 0, 0, 0xFFFFFFFF},
      {guard_16b, 32, 0xCAFEF00D, 0, 0, 0, 0xCAFEF00D},
      {guard_64b, 0, 0, 0x456789ABCDEF, 0, 0x4567, 0x89ABCDEF},
      {guard_64b, 0, 0, 0x123456789ABC, 0, 0x1234, 0x56789ABC},
      {guard_64b, 16, 0xABCD, 0x12345678, 0, 0xABCD, 0x12345678},
      {guard_64b, 18, 0x2C0DE, 0x3FFFFFFF, 0, 0xB037, 0xBFFFFFFF},
      {guard_64b, 48, 0x112233445566, 0, 0, 0x1122, 0x33445566},
      {guard_32b, 16, 0xBEEF, 0x1122334455667788, 0xBEEF, 0x11223344, 0x55667788},
      {guard_32b, 32, 0xDEADBEEF, 0x123456789ABC, 0xDEAD, 0xBEEF1234, 0x56789ABC},
      {guard_32b, 35, 0x5DEADBEEF, 0x1FFFFFFFFFFF, 0xBBD5, 0xB7DDFFFF, 0xFFFFFFFF},
      {guard_32b, 64, 0x0123456789ABCDEF, 0xFFFF, 0x0123, 0x456789AB, 0xCDEFFFFF},
  };
  for (const Row& row : rows) {
    CAPTURE(row.sts);
    CAPTURE(row.cdw14);
    const PiFormat format = format_of(row.guard, row.sts);
    Command command = make_io(Opcode::write, 1, 0, 1);
    set_pi(command, format,
           {.tags = {.app_tag = 0x1234,
                     .app_tag_mask = 0xFF0F,
                     .storage_tag = row.storage,
                     .initial_ref_tag = row.ref}});
    CHECK(command.cdw2 == row.cdw2);
    CHECK(command.cdw3 == row.cdw3);
    CHECK(command.cdw14 == row.cdw14);
    CHECK(command.cdw15 == 0xFF0F1234);
    const PiControl back = pi_of(command, format);
    CHECK(back.tags.storage_tag == row.storage);
    CHECK(back.tags.initial_ref_tag == row.ref);
    CHECK(back.tags.app_tag == 0x1234);
    CHECK(back.tags.app_tag_mask == 0xFF0F);
  }
}

TEST_CASE("a namespace without PI gets no PI bits and no tags") {
  Command command = make_io(Opcode::write, 1, 0, 1);
  set_pi(command, make_format({512, 8, separate, none}),
         {.pract = true, .checks = {}, .tags = {.app_tag = 1, .initial_ref_tag = 2}});
  CHECK(command.cdw12 == 0);
  CHECK((command.cdw2 | command.cdw3 | command.cdw14 | command.cdw15) == 0);
}

TEST_CASE(
    "R04, R05: what is transferred depends on layout, PRACT and whether PI fills the metadata") {
  struct Row {
    PiFormat::Fields fields;
    std::uint32_t blocks;
    bool pract;
    std::uint64_t data, metadata;
  };
  const Row rows[] = {
      {{512, 8, extended, type_1}, 2, false, 1040, 0},
      {{512, 8, extended, type_1}, 15, false, 7800, 0},
      {{512, 8, separate, type_1}, 11, false, 5632, 88},
      {{512, 8, extended, type_1}, 2, true, 1024, 0},
      {{512, 8, separate, type_1}, 2, true, 1024, 0},
      {{4096, 16, extended, type_1, last, guard_64b}, 4, true, 16384, 0},
      {{4096, 64, extended, type_1, last, guard_64b}, 4, true, 16640, 0},
      {{4096, 64, separate, type_1, last, guard_64b}, 4, true, 16384, 256},
      {{4096, 16, extended, type_1}, 4, true, 16448, 0},  // 8 bytes of PI in 16
      {{4096, 16, separate, type_1}, 4, true, 16384, 64},
      {{4096, 16, separate, type_1, last, guard_32b, 16}, 4, true, 16384, 0},
      {{4096, 0, separate, none}, 4, false, 16384, 0},
      {{4096, 8, extended, none}, 4, true, 16416, 0},  // no PI: PRACT means nothing
      {{4096, 8, separate, none}, 4, true, 16384, 32},
      {{4096, 64, extended, type_1}, 65536, false, 272629760, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(describe(row.fields));
    CAPTURE(row.pract);
    const TransferLength length = transfer_length(make_format(row.fields), row.blocks, row.pract);
    CHECK(length.data == row.data);
    CHECK(length.metadata == row.metadata);
  }
}

TEST_CASE(
    "R01, R02, R50: check_command refuses every length but the right one, and a missing buffer") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    for (const bool pract : {false, true}) {
      const Command good = command_for(format, 11, pract);
      REQUIRE(check_command(good, format, 1000).has_value());
      const auto refuses = [&](const char* field, auto change) {
        Command bad = good;
        change(bad);
        const auto result = check_command(bad, format, 1000);
        REQUIRE_FALSE(result.has_value());
        CHECK(result.error().code == Errc::wrong_length);
        CHECK(std::string(result.error().field) == field);
      };
      for (const int delta : {-520, -8, -1, 1, 8, 512}) {
        const auto by = static_cast<std::uint32_t>(delta);
        refuses("data length", [&](Command& c) { c.data_len += by; });
        refuses("metadata length", [&](Command& c) { c.metadata_len += by; });
      }
      refuses("data length", [](Command& c) { c.data = nullptr; });
      refuses("data length", [](Command& c) { c.data_len = 0; });
      refuses("metadata length",
              [](Command& c) { c.metadata = c.metadata == nullptr ? memory : nullptr; });
      if (good.metadata_len > 0) {
        refuses("metadata length", [](Command& c) { c.metadata_len = 0; });
        refuses("metadata length", [](Command& c) {
          c.metadata = nullptr;
          c.metadata_len = 0;
        });
      }
      // The block count, changed behind the back of the lengths.
      refuses("data length", [](Command& c) { c.cdw12 += 1; });
    }
  }
}

TEST_CASE("check_command refuses blocks outside of the namespace") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  const Command command = command_for(format, 11, false);  // blocks 10 to 20
  CHECK(check_command(command, format, 21).has_value());
  for (const std::uint64_t blocks : {0, 1, 10, 11, 20}) {
    CAPTURE(blocks);
    const auto result = check_command(command, format, blocks);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == Errc::out_of_range);
  }
  Command far = command;
  far.cdw10 = far.cdw11 = 0xFFFFFFFF;
  CHECK_FALSE(check_command(far, format, 1ull << 40).has_value());
}

TEST_CASE("a flush carries nothing") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  CHECK(check_command({.opcode = Opcode::flush}, format, 1).has_value());
  CHECK_FALSE(check_command({.opcode = Opcode::flush, .data = memory, .data_len = 512}, format, 1)
                  .has_value());
  CHECK_FALSE(
      check_command({.opcode = Opcode::flush, .metadata = memory, .metadata_len = 8}, format, 1)
          .has_value());
}

TEST_SUITE_END();
