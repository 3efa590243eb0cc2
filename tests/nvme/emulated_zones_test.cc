// Zones of an emulated namespace. Zoned Namespace Command Set Specification 1.1, sections 2.1.1
// (writing a zone), 3.4.1 (Zone Append) and 5.3 (its protection information).
#include <doctest/doctest.h>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t zone_size = 16, zone_capacity = 12;
constexpr std::uint16_t boundary = 0x1B8, full = 0x1B9, invalid_write = 0x1BC, invalid_pi = 0x181;
constexpr PiChecks ref_only{false, false, false, true};

struct Rig {
  explicit Rig(PiType type = type_1, MetadataLayout layout = separate)
      : format(make_format({512, 8, layout, type})) {
    auto made = EmulatedNamespace::create({.format = format.fields(),
                                           .block_count = 64,
                                           .zone_size = zone_size,
                                           .zone_capacity = zone_capacity});
    REQUIRE(made.has_value());
    device = std::move(*made);
  }
  // A command with its memory, of blocks that hold PI for these tags.
  Completion run(Opcode opcode, std::uint64_t slba, std::uint32_t count,
                 const PiControl& pi = {.pract = true}, bool remaps = true) {
    const PiFormat transferred = transferred_format(format, pi.pract);
    BlockBuffer memory(transferred, count);
    if (!pi.pract) generate(format, pi.tags, memory.blocks());
    Command command = make_io(opcode, 1, slba, count);
    set_pi(command, format, pi);
    if (opcode == Opcode::zone_append && remaps) command.cdw12 |= Command::cdw12_bits::pi_remap;
    if (transfers_blocks(traits_of(opcode))) {
      const TransferLength length = transfer_length(format, count, pi.pract);
      command.data = memory.blocks().data;
      command.metadata = memory.blocks().metadata;
      command.data_len = static_cast<std::uint32_t>(length.data);
      command.metadata_len = static_cast<std::uint32_t>(length.metadata);
    }
    REQUIRE(device->submit(command, 1).has_value());
    Completion completion;
    REQUIRE(device->reap({&completion, 1}, std::chrono::seconds(1)).value() == 1);
    return completion;
  }
  std::uint16_t status(Opcode opcode, std::uint64_t slba, std::uint32_t count) {
    return run(opcode, slba, count).status().code();
  }
  PiTuple stored(std::uint64_t lba) {
    Bytes metadata(8);
    REQUIRE(device->medium().read_metadata(lba, metadata) == 0);
    return decode_tuple(format, metadata.data());
  }
  PiFormat format;
  std::unique_ptr<EmulatedNamespace> device;
};

}  // namespace

TEST_SUITE_BEGIN("zones");

TEST_CASE("a zone is written at its write pointer only, until its capacity is full") {
  Rig rig;
  CHECK(rig.status(Opcode::write, 17, 1) == invalid_write);
  CHECK(rig.status(Opcode::write, 16, 4) == 0);
  CHECK(rig.device->zones().write_pointer(16) == 20);
  CHECK(rig.status(Opcode::write, 16, 1) == invalid_write);  // again
  CHECK(rig.status(Opcode::write, 21, 1) == invalid_write);  // with a gap
  CHECK(rig.status(Opcode::write, 20, 9) == boundary);       // beyond the capacity
  CHECK(rig.status(Opcode::write, 20, 8) == 0);
  CHECK(rig.status(Opcode::write, 28, 1) == full);
  CHECK(rig.status(Opcode::write, 16, 1) == full);
  CHECK(rig.device->zones().is_full(31));
  CHECK(rig.status(Opcode::write, 0, 1) == 0);  // another zone
  CHECK(rig.status(Opcode::write, 32, 17) == boundary);
}

TEST_CASE("Write Zeroes, Write Uncorrectable and Copy write to a zone like a write") {
  Rig rig;
  CHECK(rig.status(Opcode::write_zeroes, 1, 1) == invalid_write);
  CHECK(rig.status(Opcode::write_zeroes, 0, 2) == 0);
  const auto uncorrectable = [&](std::uint64_t slba) {
    return rig.run(Opcode::write_uncorrectable, slba, 2, {}).status().code();
  };
  CHECK(uncorrectable(1) == invalid_write);
  CHECK(uncorrectable(2) == 0);
  const CopyRange ranges[] = {{.slba = 0, .block_count = 1}, {.slba = 1, .block_count = 1}};
  const auto copy_to = [&](std::uint64_t destination) {
    RangeCommand made = make_copy(rig.format, 1, {.ranges = ranges, .destination = destination});
    made.command.data = made.payload.data();
    made.command.data_len = static_cast<std::uint32_t>(made.payload.size());
    return carry_out(*rig.device, made.command).code();
  };
  CHECK(copy_to(5) == invalid_write);
  CHECK(copy_to(4) == 0);
  CHECK(rig.device->zones().write_pointer(0) == 6);
  CHECK(rig.status(Opcode::write, 6, 5) == 0);
  CHECK(copy_to(11) == boundary);
  CHECK(rig.device->zones().write_pointer(0) == 11);
}

TEST_CASE("a write that is refused for its PI does not move the write pointer") {
  Rig rig;
  PiControl wrong{.checks = {}, .tags = {.initial_ref_tag = 16}};
  wrong.checks.ref_tag = true;
  wrong.tags.initial_ref_tag = 17;
  CHECK(rig.run(Opcode::write, 16, 1, wrong).status().code() == invalid_pi);
  CHECK(rig.device->zones().write_pointer(16) == 16);
}

TEST_CASE("reset empties a zone, finish fills it") {
  Rig rig;
  REQUIRE(rig.status(Opcode::write, 16, 12) == 0);
  rig.device->zones().reset(20);
  CHECK(rig.status(Opcode::write, 16, 1) == 0);
  rig.device->zones().finish(16);
  CHECK(rig.status(Opcode::write, 17, 1) == full);
  CHECK(rig.status(Opcode::zone_append, 16, 1) == full);
  rig.device->zones().reset(16);
  CHECK(rig.run(Opcode::zone_append, 16, 1).dwords == 16);
}

TEST_CASE("a zone append names the zone's first block, and says where the blocks went") {
  Rig rig;
  CHECK(rig.status(Opcode::zone_append, 17, 1) == 0x002);
  for (const std::uint64_t expected : {16u, 21u}) {
    const Completion done = rig.run(Opcode::zone_append, 16, 5);
    CHECK(done.status().ok());
    CHECK(done.dwords == expected);
  }
  CHECK(rig.status(Opcode::zone_append, 16, 3) == boundary);
  CHECK(rig.status(Opcode::zone_append, 16, 2) == 0);
  CHECK(rig.status(Opcode::zone_append, 16, 1) == full);
}

TEST_CASE("without zones a zone append is an invalid opcode") {
  const PiFormat format = make_format({512, 8, separate, none});
  const auto device = make_emulated(format);
  Bytes data(512), metadata(8);
  Command command = make_io(Opcode::zone_append, 1, 0, 1);
  command.data = data.data();
  command.data_len = 512;
  command.metadata = metadata.data();
  command.metadata_len = 8;
  CHECK(carry_out(*device, command).code() == 0x001);
}

TEST_CASE("PIREMAP: type 1 needs it, type 3 forbids it, type 2 takes either") {
  struct Row {
    PiType type;
    bool remaps;
    std::uint16_t status;
  };
  for (const Row& row :
       {Row{type_1, true, 0}, Row{type_1, false, invalid_pi}, Row{type_2, true, 0},
        Row{type_2, false, 0}, Row{type_3, true, invalid_pi}, Row{type_3, false, 0}}) {
    for (const bool pract : {false, true}) {
      Rig rig(row.type);
      CHECK(rig.run(Opcode::zone_append, 16, 2, {.pract = pract}, row.remaps).status().code() ==
            row.status);
    }
  }
}

TEST_CASE(
    "the host's reference tags count from ILBRT, the stored ones from where the blocks went") {
  for (const bool pract : {false, true}) {
    for (const MetadataLayout layout : {separate, extended}) {
      Rig rig(type_2, layout);
      REQUIRE(rig.run(Opcode::zone_append, 16, 3, {.pract = pract}).status().ok());
      const PiControl pi{.pract = pract,
                         .checks = {.storage_tag = false},
                         .tags = {.app_tag = 0xAB, .initial_ref_tag = 1000}};
      const Completion done = rig.run(Opcode::zone_append, 16, 4, pi);
      REQUIRE(done.status().ok());
      REQUIRE(done.dwords == 19);
      for (std::uint64_t i = 0; i < 4; ++i) {
        CHECK(rig.stored(19 + i).ref_tag == 1003 + i);
        CHECK(rig.stored(19 + i).app_tag == 0xAB);
      }
      // Remapping changes no other bit: what was stored verifies.
      const PiControl stored{.checks = {.storage_tag = false},
                             .tags = {.app_tag = 0xAB, .initial_ref_tag = 1003}};
      CHECK(rig.run(Opcode::verify, 19, 4, stored).status().ok());
    }
  }
}

TEST_CASE("without PIREMAP the reference tags are stored as they are") {
  for (const bool pract : {false, true}) {
    Rig rig(type_2);
    REQUIRE(rig.run(Opcode::zone_append, 16, 3, {.pract = pract}, false).status().ok());
    REQUIRE(rig.run(Opcode::zone_append, 16, 2, {.pract = pract, .tags = {.initial_ref_tag = 50}},
                    false)
                .status()
                .ok());
    CHECK(rig.stored(19).ref_tag == 50);
    CHECK(rig.stored(20).ref_tag == 51);
  }
}

TEST_CASE(
    "type 1: ILBRT is the zone's first block - anything else is Invalid Protection Information") {
  Rig rig;
  REQUIRE(rig.run(Opcode::zone_append, 16, 3).status().ok());
  const PiControl right{.checks = ref_only, .tags = {.initial_ref_tag = 16}};
  REQUIRE(rig.run(Opcode::zone_append, 16, 2, right).status().ok());
  CHECK(rig.stored(19).ref_tag == 19);
  CHECK(rig.stored(20).ref_tag == 20);
  const PiControl wrong{.checks = ref_only, .tags = {.initial_ref_tag = 21}};
  CHECK(rig.run(Opcode::zone_append, 16, 2, wrong).status().code() == invalid_pi);
}

TEST_CASE("the driver appends to zones and reads back what it appended, verified") {
  for (const PiType type : {type_1, type_2, type_3}) {
    CAPTURE(static_cast<unsigned>(type));
    auto made = EmulatedNamespace::create(
        {.format = {4096, 64, extended, type, PiPosition::last, GuardType::guard_64b},
         .block_count = 64,
         .zone_size = zone_size});
    REQUIRE(made.has_value());
    const auto ns = Namespace::open(std::unique_ptr<Transport>(std::move(*made)));
    REQUIRE(ns.has_value());
    for (const std::uint64_t expected : {32u, 35u, 38u}) {
      Bytes bytes(3 * 4096, static_cast<std::byte>(expected)), back(bytes.size());
      const auto alba = (*ns)->zone_append({.opcode = Opcode::zone_append,
                                            .slba = 32,
                                            .block_count = 3,
                                            .memory = {memory_of(bytes), {}}});
      REQUIRE(alba.has_value());
      CHECK(*alba == expected);
      Io read{.slba = *alba, .block_count = 3, .memory = {memory_of(back), {}}};
      if (type == type_2)
        read.ref_tag = 32;  // appended without PIREMAP: it is the zone's, wherever they went
      const auto counts = (*ns)->transfer(read);
      REQUIRE(counts.has_value());
      CHECK(counts->verified == 3);
      CHECK(back == bytes);
    }
  }
}

TEST_CASE("zones that cannot be are refused") {
  struct Row {
    const char* text;
    const char* key;
  };
  const TemporaryFile file;
  const std::string in_file = "size=64Ki,zone_size=4,file=" + file.path();
  const Row rows[] = {{"size=64Ki,zone_size=5", "zone_size"},
                      {"size=64Ki,zone_size=4,zone_capacity=5", "zone_capacity"},
                      {"size=64Ki,zone_capacity=4", "zone_capacity"},
                      {in_file.c_str(), "zone_size"}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto device =
        EmulatedNamespace::parse(row.text).and_then([](const EmulatedNamespace::Options& options) {
          return EmulatedNamespace::create(options);
        });
    REQUIRE_FALSE(device.has_value());
    CHECK(device.error().code == Errc::bad_option);
    CHECK(device.error().detail == row.key);
  }
}

TEST_SUITE_END();
