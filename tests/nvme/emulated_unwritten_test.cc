// Unwritten and deallocated blocks of an emulated namespace, its limits and its write protection.
// NVM Command Set Specification 1.0, sections 3.2.3.2.1 (deallocated blocks), 3.2.2 (Copy)
// and 4.1.5.1 (Identify).
#include <doctest/doctest.h>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

using Options = EmulatedNamespace::Options;

std::unique_ptr<EmulatedNamespace> make(Options options) {
  options.block_count = 64;
  auto device = EmulatedNamespace::create(options);
  REQUIRE(device.has_value());
  return std::move(*device);
}

// A command with the memory that it transfers.
struct Transfer {
  Transfer(const PiFormat& format, Opcode opcode, std::uint64_t slba, std::uint32_t count,
           const PiControl& pi = {})
      : memory(transferred_format(format, pi.pract), count),
        command(make_io(opcode, 1, slba, count)) {
    set_pi(command, format, pi);
    if (traits_of(opcode).direction == Direction::none) return;
    const TransferLength length = transfer_length(format, count, pi.pract);
    command.data = memory.blocks().data;
    command.metadata = memory.blocks().metadata;
    command.data_len = static_cast<std::uint32_t>(length.data);
    command.metadata_len = static_cast<std::uint32_t>(length.metadata);
  }
  BlockBuffer memory;
  Command command;
};

std::uint16_t run(EmulatedNamespace& device, const Command& command) {
  return carry_out(device, command).code();
}
std::uint16_t write(EmulatedNamespace& device, std::uint64_t slba, std::uint32_t count) {
  const PiControl pi{.pract = true, .tags = {.app_tag = 1, .initial_ref_tag = slba}};
  return run(device, Transfer(device.medium().format(), Opcode::write, slba, count, pi).command);
}

// A copy that passes the PI on.
RangeCommand copy_of_ranges(const PiFormat& format, std::span<const CopyRange> ranges,
                            std::uint64_t destination) {
  RangeCommand made = make_copy(format, 1,
                                {.ranges = ranges,
                                 .destination = destination,
                                 .descriptor_format = copy_descriptor_format(format)});
  made.command.data = made.payload.data();
  made.command.data_len = static_cast<std::uint32_t>(made.payload.size());
  return made;
}

constexpr std::uint8_t zeros = 1, ones = 2, zeros_with_deac = 1 | 8, ones_with_deac = 2 | 8,
                       zeros_with_guard = 1 | 16, ones_with_guard = 2 | 16;

// The metadata of an unwritten block: all tags are ones, the guard is as well or fits what is read.
Bytes unwritten_metadata(const PiFormat::Fields& fields, std::byte byte, bool guard_fits) {
  Bytes metadata(fields.metadata_size, byte);
  if (fields.type == none) return metadata;
  const std::size_t pi_at = reference_pi_offset(fields);
  Bytes covered(fields.data_size, byte);
  covered.resize(fields.data_size + (fields.position == last ? pi_at : 0), byte);
  const std::uint64_t guard = guard_fits ? reference_guard(fields.guard, covered) : ~0ull;
  for (std::size_t i = 0; i < reference_pi_size(fields.guard); ++i) {
    const std::size_t guard_bytes = std::size_t{2} << static_cast<unsigned>(fields.guard);
    metadata[pi_at + i] = i < guard_bytes
                              ? static_cast<std::byte>(guard >> 8 * (guard_bytes - 1 - i))
                              : std::byte{0xFF};
  }
  return metadata;
}

}  // namespace

TEST_SUITE_BEGIN("unwritten");

TEST_CASE("unwritten blocks read as DLFEAT says, with tags of all ones that no check minds") {
  for (const std::uint8_t dlfeat :
       {zeros, ones, zeros_with_guard, ones_with_guard, zeros_with_deac}) {
    for (const PiFormat::Fields& fields : typical_formats()) {
      CAPTURE(describe(fields));
      CAPTURE(unsigned{dlfeat});
      const auto device = make({.format = fields, .dlfeat = dlfeat});
      const PiControl pi{.checks = {.ref_tag = fields.type != type_3},
                         .tags = {.app_tag = 0x1234, .initial_ref_tag = 5}};
      Transfer transfer(device->medium().format(), Opcode::read, 5, 2, pi);
      REQUIRE(run(*device, transfer.command) == 0);
      const auto byte = static_cast<std::byte>((dlfeat & 7) == 2 ? 0xFF : 0);
      const std::string expected = hex(unwritten_metadata(fields, byte, (dlfeat & 16) != 0));
      for (std::uint32_t i = 0; i < 2; ++i) {
        CHECK(all_equal(transfer.memory.data(i), static_cast<std::uint8_t>(byte)));
        CHECK(hex(transfer.memory.metadata(i)) == expected);
      }
    }
  }
}

TEST_CASE("the driver counts unwritten blocks as unprotected, whatever they read as") {
  for (const std::uint8_t dlfeat : {zeros, ones, ones_with_guard}) {
    const auto ns = Namespace::open(
        std::unique_ptr<Transport>(make({.format = {512, 8, separate, type_1}, .dlfeat = dlfeat})));
    REQUIRE(ns.has_value());
    CHECK((*ns)->info().dlfeat == dlfeat);
    Bytes bytes(4 * 512);
    const auto read =
        (*ns)->transfer({.slba = 1, .block_count = 4, .memory = {memory_of(bytes), {}}});
    REQUIRE(read.has_value());
    CHECK(read->unprotected == 4);
    CHECK(read->verified == 0);
    CHECK(all_equal(bytes, dlfeat == zeros ? 0 : 0xFF));
  }
}

TEST_CASE(
    "DULBE: reads, compares, verifies and copies of unwritten or deallocated blocks fail with "
    "287h") {
  const PiFormat::Fields fields{512, 8, separate, type_1};
  for (const bool dulbe : {false, true}) {
    const auto device = make({.format = fields, .dulbe = dulbe});
    const PiFormat& format = device->medium().format();
    const std::uint16_t expected = dulbe ? 0x287 : 0;
    REQUIRE(write(*device, 10, 4) == 0);
    // 8 and 9 were never written, 12 is written and then deallocated.
    const BlockRange range{12, 1};
    RangeCommand deallocate = make_deallocate(1, {&range, 1});
    deallocate.command.data = deallocate.payload.data();
    deallocate.command.data_len = static_cast<std::uint32_t>(deallocate.payload.size());
    REQUIRE(run(*device, deallocate.command) == 0);
    for (const std::uint64_t slba : {8u, 9u, 12u}) {
      CHECK(run(*device, Transfer(format, Opcode::read, slba, 2).command) == expected);
      CHECK(run(*device, Transfer(format, Opcode::verify, slba, 2).command) == expected);
      const CopyRange source{.slba = slba, .block_count = 2};
      CHECK(run(*device, copy_of_ranges(format, {&source, 1}, 40).command) == expected);
      Transfer compared(format, Opcode::compare, slba, 1);
      std::fill(compared.memory.data(0).begin(), compared.memory.data(0).end(), std::byte{0});
      if (slba != 9) CHECK(run(*device, compared.command) == expected);
    }
    CHECK(run(*device, Transfer(format, Opcode::read, 10, 2).command) == 0);
    CHECK(write(*device, 8, 6) == 0);  // writing is what makes them readable
    CHECK(run(*device, Transfer(format, Opcode::read, 8, 6).command) == 0);
  }
}

TEST_CASE("Identify says that DULBE is supported where it is on") {
  for (const bool dulbe : {false, true}) {
    const auto device = make({.format = {512, 8, separate, type_1}, .dulbe = dulbe});
    const auto page = device->identify(Cns::identify_namespace);
    CHECK((std::to_integer<unsigned>((*page)[24]) & 4) == (dulbe ? 4 : 0));
  }
}

TEST_CASE("DEAC deallocates only where such blocks read as zeros") {
  for (const std::uint8_t dlfeat : {zeros, zeros_with_deac, ones_with_deac, ones}) {
    CAPTURE(unsigned{dlfeat});
    const auto device = make({.format = {512, 8, separate, type_1}, .dlfeat = dlfeat});
    REQUIRE(write(*device, 4, 1) == 0);
    Transfer zeroes(device->medium().format(), Opcode::write_zeroes, 4, 1, {.pract = true});
    zeroes.command.cdw12 |= Command::cdw12_bits::deallocate;
    REQUIRE(run(*device, zeroes.command) == 0);
    BlockState state{};
    REQUIRE(device->medium().read_states(4, {&state, 1}) == 0);
    CHECK(state == (dlfeat == zeros_with_deac ? BlockState::unwritten : BlockState::written));
    Transfer read(device->medium().format(), Opcode::read, 4, 1);
    REQUIRE(run(*device, read.command) == 0);
    CHECK(all_equal(read.memory.data(0), 0));
  }
}

TEST_CASE("a copy beyond MSRC, MSSRL or MCL is Command Size Limit Exceeded, and copies nothing") {
  const auto device = make({.format = {512, 8, separate, type_1}, .mssrl = 4, .mcl = 7, .msrc = 1});
  const PiFormat& format = device->medium().format();
  REQUIRE(write(*device, 0, 16) == 0);
  struct Row {
    std::vector<std::uint32_t> counts;
    std::uint16_t status;
  };
  const Row rows[] = {{{4}, 0},        {{5}, 0x183}, {{4, 3}, 0},
                      {{4, 4}, 0x183}, {{1, 1}, 0},  {{1, 1, 1}, 0x183}};
  for (const Row& row : rows) {
    std::vector<CopyRange> ranges;
    for (const std::uint32_t count : row.counts)
      ranges.push_back({.slba = 2, .block_count = count});
    const BlockState none[16] = {};
    REQUIRE(device->medium().write_states(32, none) == 0);
    CHECK(run(*device, copy_of_ranges(format, ranges, 32).command) == row.status);
    BlockState state{};
    REQUIRE(device->medium().read_states(32, {&state, 1}) == 0);
    CHECK((state == BlockState::written) == (row.status == 0));
  }
  const auto page = device->identify(Cns::identify_namespace);
  REQUIRE(page.has_value());
  CHECK(hex(std::span(*page).subspan(74, 7)) == "04000700000001");
}

TEST_CASE("a write protected namespace refuses what changes blocks, and nothing else") {
  const auto device = make({.format = {512, 8, separate, type_1}, .write_protected = true});
  const PiFormat& format = device->medium().format();
  const auto status_of_io = [&](Opcode opcode) {
    return run(*device, Transfer(format, opcode, 3, 2).command);
  };
  CHECK(status_of_io(Opcode::write) == 0x020);
  CHECK(status_of_io(Opcode::write_zeroes) == 0x020);
  CHECK(status_of_io(Opcode::write_uncorrectable) == 0x020);
  const CopyRange source{.slba = 1, .block_count = 1};
  CHECK(run(*device, copy_of_ranges(format, {&source, 1}, 9).command) == 0x020);
  const BlockRange range{1, 1};
  RangeCommand deallocate = make_deallocate(1, {&range, 1});
  deallocate.command.data = deallocate.payload.data();
  deallocate.command.data_len = static_cast<std::uint32_t>(deallocate.payload.size());
  CHECK(run(*device, deallocate.command) == 0x020);
  CHECK(status_of_io(Opcode::read) == 0);
  CHECK(status_of_io(Opcode::verify) == 0);
  CHECK(run(*device, {.opcode = Opcode::flush, .nsid = 1}) == 0);
  const auto page = device->identify(Cns::identify_namespace);
  CHECK((*page)[99] == std::byte{1});
}

TEST_CASE("these are keys of a device name, too") {
  const auto options = EmulatedNamespace::parse(
      "dlfeat=0x12,dulbe=1,wp=1,mssrl=8,mcl=64,msrc=3,zone_size=128,zone_capacity=100");
  REQUIRE(options.has_value());
  CHECK(options->dlfeat == 0x12);
  CHECK(options->dulbe);
  CHECK(options->write_protected);
  CHECK(options->mssrl == 8);
  CHECK(options->mcl == 64);
  CHECK(options->msrc == 3);
  CHECK(options->zone_size == 128);
  CHECK(options->zone_capacity == 100);
  for (const char* text : {"dlfeat=32", "dulbe=2", "wp=x", "mssrl=65536", "mcl=4Gi", "msrc=256"}) {
    CAPTURE(text);
    const auto refused = EmulatedNamespace::parse(text);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().detail == std::string(text).substr(0, std::string(text).find('=')));
  }
}

TEST_SUITE_END();
