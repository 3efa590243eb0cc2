// Compare, verify, write zeroes and write uncorrectable on the emulated namespace: what becomes of
// the blocks. Guards of zeroes are published values; other expectations are the specification's.
#include <doctest/doctest.h>

#include <string_view>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint16_t app = 0xABCD;

struct Rig {
  explicit Rig(const PiFormat::Fields& fields, std::uint64_t count = 8)
      : format(make_format(fields)), blocks(count) {
    auto opened = open_emulated(format);
    device = opened.device;
    ns = std::move(opened.ns);
    Random random(test_seed());
    data = random_bytes(random, blocks * format.data_size());
    REQUIRE(run(Opcode::write).has_value());
  }
  Io io(Opcode opcode) {
    Io result{.opcode = opcode,
              .slba = slba,
              .block_count = blocks,
              .app_tag = app,
              .storage_tag = 0xBEEF & format.storage_tag_max()};
    if (transfers_blocks(traits_of(opcode))) result.memory.data = memory_of(data);
    return result;
  }
  Result<VerifyCounts> run(Opcode opcode) { return ns->transfer(io(opcode)); }
  Bytes metadata(std::uint64_t lba) {
    Bytes bytes(format.metadata_size());
    REQUIRE(device->medium().read_metadata(lba, bytes) == 0);
    return bytes;
  }
  Bytes everything() {
    Bytes all(blocks * format.data_size());
    REQUIRE(device->medium().read_data(slba, all) == 0);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const Bytes beside = metadata(slba + i);
      all.insert(all.end(), beside.begin(), beside.end());
    }
    return all;
  }

  PiFormat format;
  std::uint64_t slba = 5, blocks;
  Bytes data;
  EmulatedNamespace* device = nullptr;
  std::unique_ptr<Namespace> ns;
};

std::uint16_t code_of(const Result<VerifyCounts>& result) {
  if (result) return 0;
  REQUIRE(result.error().code == Errc::status);
  return result.error().status.code();
}

}  // namespace

TEST_SUITE_BEGIN("commands on media");

TEST_CASE("R27: a compare tells equal from not equal and changes nothing, with every format") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    CAPTURE(describe(fields));
    Rig rig(fields);
    const Bytes before = rig.everything();
    for (const TransferMode mode : {TransferMode::bounce, TransferMode::lazy}) {
      Io io = rig.io(Opcode::compare);
      io.mode = mode;
      CHECK(code_of(rig.ns->transfer(io)) == 0);
      rig.data[6 * fields.data_size] ^= std::byte{1};
      CHECK(code_of(rig.ns->transfer(io)) == 0x285);
      rig.data[6 * fields.data_size] ^= std::byte{1};
    }
    CHECK(rig.everything() == before);
    check_all_slots_are_back(*rig.ns);
  }
}

TEST_CASE("a compare checks the PI on both sides, and compares all metadata but the PI") {
  for (const PiPosition position : {last, first}) {
    CAPTURE(position == first);
    Rig rig({512, 16, separate, type_2, position}, 1);
    const std::size_t pi = position == first ? 0 : 8, beside = position == first ? 8 : 0;
    Bytes metadata = rig.metadata(5);
    Io io = rig.io(Opcode::compare);
    io.memory.metadata = memory_of(metadata);
    io.pi = PiOwner::caller;
    io.device_checks = PiChecks::none();
    metadata[pi + 2] ^= std::byte{1};
    CHECK(code_of(rig.ns->transfer(io)) == 0);
    io.device_checks.app_tag = true;
    CHECK(code_of(rig.ns->transfer(io)) == 0x283);
    metadata[pi + 2] ^= std::byte{1};
    io.device_checks = PiChecks::none();
    metadata[beside] ^= std::byte{1};
    CHECK(code_of(rig.ns->transfer(io)) == 0x285);
    metadata[beside] ^= std::byte{1};
    io.device_checks.guard = true;
    CHECK(code_of(rig.ns->transfer(io)) == 0);
    damage(*rig.device, 5);
    CHECK(code_of(rig.ns->transfer(io)) == 0x282);
  }
}

TEST_CASE("a verify names each tag that is wrong, by the checks that are on") {
  Rig rig({4096, 16, separate, type_2, last, guard_64b, 16});
  CHECK(code_of(rig.run(Opcode::verify)) == 0);
  struct Wrong {
    std::uint16_t status;
    void (*change)(Io& io);
    void (*off)(Io& io);
  };
  const Wrong wrongs[] = {
      {0x283, [](Io& io) { io.app_tag ^= 1; }, [](Io& io) { io.device_checks.app_tag = false; }},
      {0x283, [](Io& io) { io.app_tag ^= 1; }, [](Io& io) { io.app_tag_mask = 0xFFFE; }},
      {0x288, [](Io& io) { io.storage_tag ^= 1; },
       [](Io& io) { io.device_checks.storage_tag = false; }},
      {0x284, [](Io& io) { io.ref_tag = 6; }, [](Io& io) { io.device_checks.ref_tag = false; }},
  };
  for (const Wrong& wrong : wrongs) {
    CAPTURE(wrong.status);
    Io io = rig.io(Opcode::verify);
    wrong.change(io);
    CHECK(code_of(rig.ns->transfer(io)) == wrong.status);
    wrong.off(io);
    CHECK(code_of(rig.ns->transfer(io)) == 0);
  }
  damage(*rig.device, 9);
  Io io = rig.io(Opcode::verify);
  CHECK(code_of(rig.ns->transfer(io)) == 0x282);
  io.device_checks.guard = false;
  CHECK(code_of(rig.ns->transfer(io)) == 0);
}

TEST_CASE("unwritten blocks pass a verify and compare as zeros, whatever tags are expected") {
  for (const PiType type : {type_1, type_2, type_3}) {
    Rig rig({512, 8, separate, type});
    rig.slba = 100;
    Io io = rig.io(Opcode::verify);
    io.app_tag = 0x5555;
    CHECK(code_of(rig.ns->transfer(io)) == 0);
    rig.data.assign(rig.data.size(), std::byte{0});
    CHECK(code_of(rig.run(Opcode::compare)) == 0);
    rig.data.back() = std::byte{1};
    CHECK(code_of(rig.run(Opcode::compare)) == 0x285);
  }
}

TEST_CASE(
    "R17: zeroes have the PI of zeroes: guard, the tags as given, reference tags that count") {
  struct Row {
    PiFormat::Fields format;
    std::string_view first, second;  // the metadata of LBA 5 and 6
  };
  const std::string beside(2 * 48, '0'), beside_16b(2 * 56, '0');
  const std::pair<Row, std::string> rows[] = {
      {{{512, 8, separate, type_1}, "0000abcd00000005", "0000abcd00000006"}, ""},
      {{{4096, 8, extended, type_1}, "0000abcd00000005", "0000abcd00000006"}, ""},
      {{{512, 8, separate, type_3}, "0000abcd00000000", "0000abcd00000000"}, ""},
      {{{4096, 64, separate, type_1}, "0000abcd00000005", "0000abcd00000006"}, beside_16b},
      {{{512, 8, separate, type_1, last, guard_16b, 8}, "0000abcdef000005", "0000abcdef000006"},
       ""},
      {{{4096, 16, separate, type_1, last, guard_64b},
        "6482d367eb22b64eabcd000000000005",
        "6482d367eb22b64eabcd000000000006"},
       ""},
      {{{4096, 64, extended, type_1, last, guard_64b},
        "469a00d4fc907450abcd000000000005",
        "469a00d4fc907450abcd000000000006"},
       beside},
      {{{4096, 16, separate, type_1, last, guard_32b, 16},
        "98f94189abcdbeef0000000000000005",
        "98f94189abcdbeef0000000000000006"},
       ""},
      {{{4096, 64, separate, type_1, last, guard_32b, 16},
        "8d617306abcdbeef0000000000000005",
        "8d617306abcdbeef0000000000000006"},
       beside},
  };
  for (const auto& [row, before_pi] : rows) {
    for (const PiOwner owner : {PiOwner::host, PiOwner::device}) {
      CAPTURE(describe(row.format));
      Rig rig(row.format);
      Io io = rig.io(Opcode::write_zeroes);
      io.pi = owner;
      REQUIRE(rig.ns->transfer(io).has_value());
      CHECK(hex(rig.metadata(5)) == before_pi + std::string(row.first));
      CHECK(hex(rig.metadata(6)) == before_pi + std::string(row.second));
      const auto counts = rig.run(Opcode::read);
      REQUIRE(counts.has_value());
      CHECK(counts->verified == 8);
      CHECK(all_equal(rig.data, 0));
    }
  }
  // With the PI in front, the guard covers the data alone, and what follows the PI is zero.
  Rig rig({4096, 64, separate, type_1, first, guard_64b});
  REQUIRE(rig.run(Opcode::write_zeroes).has_value());
  CHECK(hex(rig.metadata(5)) == "6482d367eb22b64eabcd000000000005" + beside);
}

TEST_CASE("zeroes with the caller's PI have PI of zeros, with DEAC they are unwritten") {
  Rig rig({4096, 16, separate, type_1, last, guard_64b});
  Io io = rig.io(Opcode::write_zeroes);
  io.pi = PiOwner::caller;
  REQUIRE(rig.ns->transfer(io).has_value());
  CHECK(all_equal(rig.metadata(5), 0));
  CHECK(code_of(rig.run(Opcode::read)) == 0x282);
  io = rig.io(Opcode::write_zeroes);
  io.deallocate = true;
  REQUIRE(rig.ns->transfer(io).has_value());
  const auto counts = rig.run(Opcode::read);
  REQUIRE(counts.has_value());
  CHECK(counts->unprotected == 8);
  CHECK(all_equal(rig.data, 0));
}

TEST_CASE("blocks made uncorrectable fail every command that reads them, until they are written") {
  for (const Opcode rewrite : {Opcode::write, Opcode::write_zeroes}) {
    Rig rig({512, 8, extended, type_1});
    REQUIRE(rig.run(Opcode::write_uncorrectable).has_value());
    for (const Opcode opcode : {Opcode::read, Opcode::verify, Opcode::compare}) {
      CHECK(code_of(rig.run(opcode)) == 0x281);
    }
    REQUIRE(rig.run(rewrite).has_value());
    const auto counts = rig.run(Opcode::read);
    REQUIRE(counts.has_value());
    CHECK(counts->verified == 8);
    check_all_slots_are_back(*rig.ns);
  }
}

TEST_SUITE_END();
