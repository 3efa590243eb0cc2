// Commands that an emulated namespace refuses before it looks at a block.
#include <doctest/doctest.h>

#include "nvme/emulated_namespace.h"
#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint16_t dnr = 0x4000;

// Memory for 64 blocks of any format below, whatever the command says of its length.
struct Rig {
  explicit Rig(const PiFormat::Fields& fields, std::uint8_t mdts = 0)
      : format(make_format(fields)),
        device(make_emulated(format, {.block_count = 1000, .mdts = mdts})) {}
  Command command(Opcode opcode, std::uint64_t slba, std::uint32_t count,
                  const PiControl& pi = {}) {
    Command result = make_io(opcode, 1, slba, count);
    set_pi(result, format, pi);
    const TransferLength length = transfer_length(format, count, pi.pract);
    result.data = data.data();
    result.data_len = static_cast<std::uint32_t>(length.data);
    result.metadata_len = static_cast<std::uint32_t>(length.metadata);
    result.metadata = length.metadata > 0 ? metadata.data() : nullptr;
    return result;
  }
  std::uint16_t run(const Command& command) { return carry_out(*device, command).raw(); }

  PiFormat format;
  std::unique_ptr<EmulatedNamespace> device;
  Bytes data = Bytes(64 * 4160), metadata = Bytes(64 * 64);
};

}  // namespace

TEST_SUITE_BEGIN("emulated commands");

TEST_CASE("blocks behind the end are LBA Out of Range, with DNR") {
  Rig rig({512, 8, separate, type_1});
  for (const Opcode opcode : {Opcode::read, Opcode::write}) {
    CHECK(rig.run(rig.command(opcode, 996, 4)) == 0);
    CHECK(rig.run(rig.command(opcode, 997, 4)) == (0x080 | dnr));
    CHECK(rig.run(rig.command(opcode, 1000, 1)) == (0x080 | dnr));
    CHECK(rig.run(rig.command(opcode, ~0ull, 2)) == (0x080 | dnr));
  }
}

TEST_CASE("more than MDTS is Invalid Field - interleaved metadata counts, separate does not") {
  Rig separated({4096, 8, separate, type_1}, 4);  // 64 KiB
  CHECK(separated.run(separated.command(Opcode::read, 0, 16)) == 0);
  CHECK(separated.run(separated.command(Opcode::read, 0, 17)) == (0x002 | dnr));
  Rig interleaved({4096, 8, extended, type_1}, 4);
  CHECK(interleaved.run(interleaved.command(Opcode::read, 0, 15)) == 0);
  CHECK(interleaved.run(interleaved.command(Opcode::read, 0, 16)) == (0x002 | dnr));
  // PRACT hides the metadata, so it does not count either.
  const PiControl pract{.pract = true};
  CHECK(interleaved.run(interleaved.command(Opcode::write, 0, 16, pract)) == 0);
  CHECK(interleaved.run(interleaved.command(Opcode::write, 0, 17, pract)) == (0x002 | dnr));
  Rig unlimited({4096, 64, extended, type_1}, 0);
  CHECK(unlimited.run(unlimited.command(Opcode::read, 0, 64)) == 0);
}

TEST_CASE("a length that does not fit the block count is refused") {
  Rig rig({512, 8, separate, type_1});
  Command command = rig.command(Opcode::write, 0, 4);
  command.data_len -= 512;
  CHECK(rig.run(command) == (0x00F | dnr));
  command = rig.command(Opcode::write, 0, 4);
  command.metadata_len -= 8;
  CHECK((rig.run(command) & 0x7FF) != 0);
}

TEST_CASE("R20: type 1 with a reference check wants ILBRT to be the address - PRACT writes do not") {
  Rig rig({512, 8, separate, type_1});
  const PiChecks ref{false, false, false, true};
  const PiTags wrong{.initial_ref_tag = 101};
  constexpr std::uint16_t refused = 0x181 | dnr;
  CHECK(rig.run(rig.command(Opcode::read, 100, 1, {.checks = ref, .tags = wrong})) == refused);
  CHECK(rig.run(rig.command(Opcode::write, 100, 1, {.checks = ref, .tags = wrong})) == refused);
  CHECK(rig.run(rig.command(Opcode::read, 100, 1, {.tags = wrong})) == 0);
  CHECK(rig.run(rig.command(Opcode::read, 100, 1, {.pract = true, .checks = ref, .tags = wrong})) ==
        refused);
  CHECK(rig.run(rig.command(Opcode::write, 100, 1,
                            {.pract = true, .checks = ref, .tags = wrong})) == 0);
}

TEST_CASE("type 1 compares ILBRT at the width of the reference tag") {
  Rig rig(
      {512, 8, separate, type_1, PiPosition::last, GuardType::guard_16b, 24});  // 8 bits are left
  const PiChecks ref{false, false, false, true};
  CHECK(rig.run(rig.command(Opcode::read, 0x234, 1,
                            {.checks = ref, .tags = {.initial_ref_tag = 0x34}})) == 0);
  CHECK(rig.run(rig.command(Opcode::read, 0x234, 1,
                            {.checks = ref, .tags = {.initial_ref_tag = 0x35}})) == (0x181 | dnr));
}

TEST_CASE("type 3 with a reference check is Invalid Protection Information - type 2 takes any tag") {
  const PiControl ref{.checks = {false, false, false, true}, .tags = {.initial_ref_tag = 0x999}};
  Rig constant({512, 8, separate, type_3});
  CHECK(constant.run(constant.command(Opcode::read, 4, 1, ref)) == (0x181 | dnr));
  CHECK(constant.run(constant.command(Opcode::write, 4, 1, ref)) == (0x181 | dnr));
  Rig free({512, 8, separate, type_2});
  CHECK(free.run(free.command(Opcode::read, 4, 1, ref)) == 0);
}

TEST_CASE("without PI in the namespace all PI fields are ignored") {
  Rig rig({512, 8, separate, none});
  Command command = rig.command(Opcode::write, 4, 2);
  command.cdw12 |= 0x3D000000;
  command.cdw14 = command.cdw15 = command.cdw3 = 0x12345678;
  CHECK(rig.run(command) == 0);
  command.opcode = Opcode::read;
  CHECK(rig.run(command) == 0);
}

TEST_CASE("unused tag bits of CDW2 and CDW3 are ignored") {
  Rig rig({512, 8, separate, type_1});
  Command command = rig.command(Opcode::read, 7, 1, {.checks = {}, .tags = {.initial_ref_tag = 7}});
  command.cdw3 = 0xFFFFFFFF;
  command.cdw2 = 0xFFFFFFFF;
  CHECK(rig.run(command) == 0);
}

TEST_CASE("another namespace, opcode or unregistered buffer is refused - a flush is not") {
  Rig rig({512, 8, separate, type_1});
  Command command = rig.command(Opcode::read, 0, 1);
  command.nsid = 2;
  CHECK(rig.run(command) == (0x00B | dnr));
  command = rig.command(Opcode::read, 0, 1);
  command.opcode = static_cast<Opcode>(0x7F);
  CHECK(rig.run(command) == (0x001 | dnr));
  command = rig.command(Opcode::read, 0, 1);
  command.fixed_buffer = 0;
  CHECK(rig.run(command) != 0);
  CHECK(rig.run({.opcode = Opcode::flush, .nsid = 1}) == 0);
}

TEST_CASE("commands wait until they are reaped, come back in order, and are bounded in number") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  auto device = make_emulated(format, {.block_count = 1000, .capacity = 3});
  Bytes data(512), metadata(8);
  Command command = make_io(Opcode::write, 1, 0, 1);
  command.data = data.data();
  command.data_len = 512;
  command.metadata = metadata.data();
  command.metadata_len = 8;
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(device->submit(command, i).has_value());
  CHECK_FALSE(device->submit(command, 3).has_value());
  Completion completions[2];
  CHECK(device->reap(completions, std::chrono::seconds(0)).value() == 2);
  CHECK(completions[0].user_data == 0);
  CHECK(completions[1].user_data == 1);
  CHECK(device->submit(command, 4).has_value());
  CHECK(device->reap(completions, std::chrono::seconds(0)).value() == 2);
  CHECK(completions[1].user_data == 4);
  CHECK(device->reap(completions, std::chrono::seconds(0)).value() == 0);
}

TEST_SUITE_END();
