// The front door over emulated namespaces: what is written comes back, whatever its size and
// pieces, and every slot is back afterwards.
#include "nvme/namespace.h"

#include <doctest/doctest.h>


#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

// The metadata bytes that belong to the user: without the PI.
Bytes without_pi(const PiFormat& format, Bytes metadata) {
  if (!format.has_pi()) return metadata;
  const std::size_t ms = format.metadata_size();
  for (std::size_t at = reference_pi_offset(format.fields()); at < metadata.size(); at += ms) {
    std::fill_n(metadata.begin() + static_cast<std::ptrdiff_t>(at), format.pi_size(), std::byte{0});
  }
  return metadata;
}

// Tags that a user may give for this address.
void set_tags(Random& random, const PiFormat& format, Io& io) {
  const PiTags tags = random_tags(random, format);
  io.app_tag = tags.app_tag;
  io.storage_tag = tags.storage_tag;
  if (format.type() == type_2 || format.type() == type_3) io.ref_tag = tags.initial_ref_tag;
}

}  // namespace

TEST_SUITE_BEGIN("namespace");

TEST_CASE("what was written comes back, for all formats, sizes beyond MDTS and depth, any pieces") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    const auto [device, ns] = open_emulated(format);
    for (int round = 0; round < 12; ++round) {
      CAPTURE(round);
      const std::uint64_t most = round == 0 ? 3000 : below(random, 2) == 0 ? 400 : 8;
      const std::uint64_t blocks = round == 0 ? most : 1 + below(random, most);
      const bool with_metadata = format.metadata_size() > 0 && coin(random);
      Io io{.opcode = Opcode::write, .slba = below(random, 4096 - blocks), .block_count = blocks};
      io.pi = below(random, 3) == 0 ? PiOwner::device : PiOwner::host;
      const bool metadata_moves = TransferredFormats(format).of(io).metadata_size() > 0;
      set_tags(random, format, io);

      const Bytes data = random_bytes(random, blocks * format.data_size());
      const Bytes metadata = random_bytes(random, blocks * format.metadata_size());
      const Scattered from = scatter(random, data), beside = scatter(random, metadata);
      io.memory = {from.memory(), with_metadata && metadata_moves ? beside.memory() : UserMemory{}};
      REQUIRE(ns->transfer(io).has_value());

      const Scattered to = scatter(random, Bytes(data.size()));
      const Scattered to_beside = scatter(random, Bytes(metadata.size()));
      io.opcode = Opcode::read;
      io.memory = {to.memory(),
                   with_metadata && metadata_moves ? to_beside.memory() : UserMemory{}};
      const auto counts = ns->transfer(io);
      REQUIRE(counts.has_value());
      REQUIRE(to.gathered() == data);
      if (with_metadata && metadata_moves) {
        REQUIRE(without_pi(format, to_beside.gathered()) == without_pi(format, metadata));
      }
      const bool host = io.pi == PiOwner::host;
      CHECK(counts->verified == (host && format.has_pi() ? blocks : 0));
      CHECK(counts->mismatched == 0);
      check_all_slots_are_back(*ns);
    }
  }
}

TEST_CASE("blocks that the device protects are the ones that the host would have made") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    if (fields.type == none) continue;
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    const auto [device, ns] = open_emulated(format);
    const Bytes data = random_bytes(random, 70ull * fields.data_size);
    Io io{.opcode = Opcode::write,
          .slba = 5,
          .block_count = 70,
          .memory = {UserMemory::read_only(data), {}},
          .app_tag = 0x4321};
    Bytes tuples[2];
    for (const PiOwner owner : {PiOwner::host, PiOwner::device}) {
      io.pi = owner;
      REQUIRE(ns->transfer(io).has_value());
      Bytes& metadata = tuples[owner == PiOwner::device ? 1 : 0];
      metadata.resize(70ull * fields.metadata_size);
      REQUIRE(device->medium().read_metadata(5, metadata) == 0);
    }
    CHECK(hex(tuples[0]) == hex(tuples[1]));
  }
}

TEST_CASE("a caller's own PI goes to the device and back unread") {
  Random random(test_seed());
  for (const MetadataLayout layout : {separate, extended}) {
    const PiFormat format = make_format({512, 8, layout, type_1});
    const auto [device, ns] = open_emulated(format);
    const Bytes data = random_bytes(random, 20 * 512), metadata = random_bytes(random, 20 * 8);
    Io io{.opcode = Opcode::write,
          .block_count = 20,
          .memory = {UserMemory::read_only(data), UserMemory::read_only(metadata)},
          .pi = PiOwner::caller,
          .device_checks = PiChecks::none()};
    REQUIRE(ns->transfer(io).has_value());
    Bytes stored(metadata.size()), to(data.size()), to_beside(metadata.size());
    REQUIRE(device->medium().read_metadata(0, stored) == 0);
    CHECK(hex(stored) == hex(metadata));
    io.opcode = Opcode::read;
    io.memory = {memory_of(to), memory_of(to_beside)};
    const auto counts = ns->transfer(io);
    REQUIRE(counts.has_value());
    CHECK(counts->verified + counts->unprotected == 0);
    CHECK(to == data);
    CHECK(hex(to_beside) == hex(metadata));
    // The device finds what the caller got wrong, if it is told to look.
    io.device_checks = {};
    const auto refused = ns->transfer(io);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().status.code() == 0x282);
  }
}

TEST_CASE(
    "every bad block of a long read is reported with its place in the whole, and reads as zeros") {
  Random random(test_seed());
  for (const MetadataLayout layout : {separate, extended}) {
    for (const TransferMode mode : {TransferMode::bounce, TransferMode::zero_copy}) {
      const PiFormat format = make_format({512, 8, layout, type_1});
      const auto [device, ns] = open_emulated(format);
      const bool in_place = mode == TransferMode::zero_copy;
      const std::size_t stride = in_place ? format.data_stride() : 512;
      AlignedBytes memory(2000 * stride);
      std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x66});
      Io io{.opcode = Opcode::write,
            .slba = 100,
            .block_count = 2000,
            .memory = {memory.memory(), {}},
            .mode = mode};
      REQUIRE(ns->transfer(io).has_value());
      std::vector<std::uint64_t> bad = {100, 101, 355, 1999, 2099};
      for (const std::uint64_t lba : bad) damage(*device, lba);
      std::vector<std::uint64_t> seen;
      const auto sink = [&](const PiMismatch& mismatch) {
        CHECK(mismatch.block_index == mismatch.lba - io.slba);
        seen.push_back(mismatch.lba);
        return true;
      };
      io.opcode = Opcode::read;
      io.device_checks = PiChecks::none();
      io.on_mismatch = sink;
      const auto result = ns->transfer(io);
      REQUIRE_FALSE(result.has_value());
      CHECK(result.error().code == Errc::pi_mismatch);
      CHECK(result.error().mismatch.lba == 100);
      CHECK(result.error().mismatch_count == bad.size());
      std::sort(seen.begin(), seen.end());
      CHECK(seen == bad);
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const bool is_bad = std::find(bad.begin(), bad.end(), 100 + i) != bad.end();
        REQUIRE(all_equal(memory.bytes().subspan(i * stride, 512), is_bad ? 0x00 : 0x66));
      }
      // The error names its block by the place in the whole, too: here the second command is the first to fail.
      io.slba = 356;
      io.block_count = 1744;
      io.memory.data = io.memory.data.subview(0, 1744 * stride);
      const auto later = ns->transfer(io);
      REQUIRE_FALSE(later.has_value());
      CHECK(later.error().mismatch.lba == 1999);
      CHECK(later.error().mismatch.block_index == 1999 - 356);
      check_all_slots_are_back(*ns);
    }
  }
}

TEST_CASE("a device's refusal in the middle of a long transfer names the command that failed") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  const auto [device, ns] = open_emulated(format);
  Bytes data(2000 * 512, std::byte{5});
  Io io{.opcode = Opcode::write, .block_count = 2000, .memory = {memory_of(data), {}}};
  REQUIRE(ns->transfer(io).has_value());
  damage(*device, 700);  // in the third command of 256 blocks
  io.opcode = Opcode::read;
  const auto result = ns->transfer(io);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::status);
  CHECK(result.error().status.code() == 0x282);
  CHECK(result.error().slba == 512);
  CHECK(result.error().block_count == 256);
  check_all_slots_are_back(*ns);
}

TEST_SUITE_END();
