// Transfers from and to the caller's own memory: the same blocks, and nothing wrong left behind.
#include <doctest/doctest.h>

#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

TEST_SUITE_BEGIN("zero-copy");

TEST_CASE("zero-copy moves the same blocks from and to the caller's own memory") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    const auto [device, ns] = open_emulated(format);
    constexpr std::uint64_t blocks = 300;
    AlignedBytes memory(blocks * format.data_stride(), 4);
    const Bytes content = random_bytes(random, memory.bytes().size());
    std::copy(content.begin(), content.end(), memory.bytes().begin());
    Io io{.opcode = Opcode::write,
          .slba = 9,
          .block_count = blocks,
          .memory = {memory.memory(), {}},
          .mode = TransferMode::zero_copy};
    REQUIRE(ns->transfer(io).has_value());

    Bytes through_slots(blocks * format.data_size());
    const auto bounced =
        ns->transfer({.slba = 9, .block_count = blocks, .memory = {memory_of(through_slots), {}}});
    REQUIRE(bounced.has_value());
    AlignedBytes target(memory.bytes().size());
    io.opcode = Opcode::read;
    io.memory.data = target.memory();
    const auto counts = ns->transfer(io);
    REQUIRE(counts.has_value());
    CHECK(counts->verified == (format.has_pi() ? blocks : 0));
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto at = i * format.data_stride();
      const auto block = copy_of(std::span(content).subspan(at, format.data_size()));
      REQUIRE(copy_of(target.bytes().subspan(at, format.data_size())) == block);
      REQUIRE(
          copy_of(std::span(through_slots).subspan(i * format.data_size(), format.data_size())) ==
          block);
    }
    check_all_slots_are_back(*ns);
  }
}

TEST_CASE("zero-copy: a block that was not checked because the sink said stop is not left behind") {
  for (const MetadataLayout layout : {separate, extended}) {
    CAPTURE(layout == extended);
    const PiFormat format = make_format({512, 8, layout, type_1});
    const auto [device, ns] = open_emulated(format);
    AlignedBytes memory(8ull * format.data_stride());
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x66});
    Io io{.opcode = Opcode::write,
          .block_count = 8,
          .memory = {memory.memory(), {}},
          .mode = TransferMode::zero_copy};
    REQUIRE(ns->transfer(io).has_value());
    damage(*device, 2);
    damage(*device, 5);
    const auto stop = [](const PiMismatch&) { return false; };
    io.opcode = Opcode::read;
    io.device_checks = PiChecks::none();
    io.on_mismatch = stop;
    CHECK(ns->transfer(io).error().code == Errc::pi_mismatch);
    // Block 5 is as wrong as block 2.
    CHECK(memory.bytes()[5 * format.data_stride() + 1] != (std::byte{0x66} ^ std::byte{0x20}));
  }
}

TEST_CASE("zero-copy: a bad block's separate metadata is erased like its data") {
  const PiFormat format = make_format({4096, 64, separate, type_1});
  const auto [device, ns] = open_emulated(format);
  AlignedBytes data(4 * 4096), metadata(4 * 64);
  std::fill(metadata.bytes().begin(), metadata.bytes().end(), std::byte{0x66});
  Io io{.opcode = Opcode::write,
        .block_count = 4,
        .memory = {data.memory(), metadata.memory()},
        .mode = TransferMode::zero_copy};
  REQUIRE(ns->transfer(io).has_value());
  damage(*device, 1);
  io.opcode = Opcode::read;
  io.device_checks = PiChecks::none();
  CHECK(ns->transfer(io).error().code == Errc::pi_mismatch);
  CHECK(all_equal(metadata.bytes().subspan(64, 64), 0));
  CHECK(all_equal(metadata.bytes().subspan(128, 56), 0x66));
}

TEST_SUITE_END();
