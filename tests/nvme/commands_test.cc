// Compare, verify, write zeroes, write uncorrectable, zone append, flush: what is sent, and what
// becomes of the blocks. Expected dwords and guards are the specification's.
#include <doctest/doctest.h>

#include <string_view>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t far = 0x1'2345'6789;

const PiFormat::Fields plain_16b{512, 8, separate, type_1};

// Everything a device can say of a namespace that takes no commands seriously.
struct Script {
  explicit Script(const PiFormat::Fields& fields, std::uint64_t blocks = 1ull << 40)
      : format(make_format(fields)) {
    auto made = std::make_unique<ScriptedTransport>(format, blocks);
    transport = made.get();
    auto opened =
        Namespace::open(std::unique_ptr<Transport>(std::move(made)), {.queue = {.depth = 4}});
    REQUIRE(opened.has_value());
    ns = std::move(*opened);
  }
  PiFormat format;
  ScriptedTransport* transport = nullptr;
  std::unique_ptr<Namespace> ns;
};

struct Row {
  std::string_view name;
  PiFormat::Fields format;
  Io io;  // at `far`; memory is given where the opcode moves blocks
  std::uint8_t opcode;
  std::uint32_t cdw12, cdw13, cdw14, cdw15;
  std::uint32_t cdw3 = 0, cdw2 = 0;
};

Io io_of(Opcode opcode, std::uint64_t blocks = 8) {
  return {.opcode = opcode, .slba = far, .block_count = blocks, .app_tag = 0x1234};
}

Io with(Io io, void (*change)(Io&)) {
  change(io);
  return io;
}

constexpr std::uint32_t tag = 0x23456789, app = 0xFFFF1234;
const PiFormat::Fields wide_64b{4096, 16, separate, type_1, last, guard_64b, 0};

const Row rows[] = {
    {"write", plain_16b, io_of(Opcode::write), 0x01, 0x1C000007, 0, tag, app},
    {"write to a placement handle", plain_16b,
     with(io_of(Opcode::write), [](Io& io) { io.directive_type = 2, io.directive_value = 0xABCD; }),
     0x01, 0x1C200007, 0xABCD0000, tag, app},
    {"write to a stream", plain_16b,
     with(io_of(Opcode::write), [](Io& io) { io.directive_type = 1, io.directive_value = 3; }),
     0x01, 0x1C100007, 0x00030000, tag, app},
    {"write, PRACT and all checks", plain_16b,
     with(io_of(Opcode::write), [](Io& io) { io.pi = PiOwner::device; }), 0x01, 0x3C000007, 0, tag,
     app},
    {"write, guard and reference tag, FUA", plain_16b,
     with(io_of(Opcode::write, 1),
          [](Io& io) { io.device_checks.app_tag = false, io.force_unit_access = true; }),
     0x01, 0x54000000, 0, tag, app},
    {"compare", plain_16b, io_of(Opcode::compare), 0x05, 0x1C000007, 0, tag, app},
    {"compare, the device's PI", plain_16b,
     with(io_of(Opcode::compare), [](Io& io) { io.pi = PiOwner::device; }), 0x05, 0x1C000007, 0,
     tag, app},
    {"verify", plain_16b, io_of(Opcode::verify), 0x0C, 0x1C000007, 0, tag, app},
    {"verify, the device's PI, limited retry", plain_16b,
     with(io_of(Opcode::verify), [](Io& io) { io.pi = PiOwner::device, io.limited_retry = true; }),
     0x0C, 0x9C000007, 0, tag, app},
    {"verify, 64b guard", wide_64b, io_of(Opcode::verify), 0x0C, 0x1C000007, 0, tag, app, 1},
    {"write zeroes", plain_16b, io_of(Opcode::write_zeroes), 0x08, 0x20000007, 0, tag, app},
    {"write zeroes, the device's PI", plain_16b,
     with(io_of(Opcode::write_zeroes), [](Io& io) { io.pi = PiOwner::device; }), 0x08, 0x20000007,
     0, tag, app},
    {"write zeroes, DEAC", plain_16b,
     with(io_of(Opcode::write_zeroes, 16), [](Io& io) { io.deallocate = true; }), 0x08, 0x2200000F,
     0, tag, app},
    {"write zeroes, the caller's PI", plain_16b,
     with(io_of(Opcode::write_zeroes), [](Io& io) { io.pi = PiOwner::caller; }), 0x08, 0x00000007,
     0, tag, app},
    {"write zeroes, no PI", {512, 0}, io_of(Opcode::write_zeroes), 0x08, 0x00000007, 0, 0, 0},
    {"write uncorrectable has neither tags nor FUA", plain_16b,
     with(io_of(Opcode::write_uncorrectable), [](Io& io) { io.force_unit_access = true; }), 0x04,
     0x00000007, 0, 0, 0},
    {"zone append, type 1: PIREMAP", plain_16b, io_of(Opcode::zone_append), 0x7D, 0x1E000007, 0,
     tag, app},
    {"zone append, type 2",
     {512, 8, separate, type_2},
     io_of(Opcode::zone_append),
     0x7D,
     0x1C000007,
     0,
     tag,
     app},
    {"zone append, type 3: no reference tag",
     {512, 8, separate, type_3},
     io_of(Opcode::zone_append),
     0x7D,
     0x18000007,
     0,
     0,
     app},
    {"zone append, no PI", {512, 0}, io_of(Opcode::zone_append), 0x7D, 0x00000007, 0, 0, 0},
    {"compare, 32b guard, storage tag",
     {4096, 16, extended, type_2, last, guard_32b, 16},
     with(io_of(Opcode::compare),
          [](Io& io) { io.storage_tag = 0xBEEF, io.ref_tag = 0x1122334455667788; }),
     0x05,
     0x1D000007,
     0,
     0x55667788,
     app,
     0x11223344,
     0xBEEF},
};

}  // namespace

TEST_SUITE_BEGIN("commands");

TEST_CASE("R17, R27: every opcode is sent as itself, with the dwords of the specification") {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Io io = row.io;
    Bytes data(io.block_count * row.format.data_size);
    Script script(row.format);
    const bool moves = transfers_blocks(traits_of(io.opcode));
    if (moves) io.memory.data = memory_of(data);
    const auto done = script.ns->queue().submit(io);
    REQUIRE(done.has_value());
    REQUIRE(script.transport->sent().size() == 1);
    const Command& command = script.transport->sent()[0].command;
    CHECK(static_cast<unsigned>(command.opcode) == row.opcode);
    CHECK(command.nsid == 7);
    CHECK(command.cdw10 == 0x23456789);
    CHECK(command.cdw11 == 1);
    CHECK(command.cdw12 == row.cdw12);
    CHECK(command.cdw13 == row.cdw13);
    CHECK(command.cdw14 == row.cdw14);
    CHECK(command.cdw15 == row.cdw15);
    CHECK(command.cdw3 == row.cdw3);
    CHECK(command.cdw2 == row.cdw2);
    CHECK((command.data != nullptr) == moves);
    if (moves) continue;
    CHECK(command.metadata == nullptr);
    CHECK(command.data_len == 0);
    CHECK(command.metadata_len == 0);
    CHECK(command.fixed_buffer == -1);
  }
}

TEST_CASE(
    "R17: commands without data are split at 65536 blocks, not at MDTS or the size of a slot") {
  for (const Opcode opcode : {Opcode::verify, Opcode::write_zeroes, Opcode::write_uncorrectable}) {
    Script script(plain_16b);
    CHECK(script.ns->queue().max_blocks(PiOwner::host, opcode) == 65536);
    Io io = io_of(opcode, 200'000);
    io.slba = 5;
    REQUIRE(script.ns->transfer(io).has_value());
    const auto& sent = script.transport->sent();
    REQUIRE(sent.size() == 4);
    for (std::uint32_t i = 0; i < 4; ++i) {
      CHECK(sent[i].command.cdw10 == 5 + i * 65536);
      CHECK((sent[i].command.cdw12 & 0xFFFF) == (i < 3 ? 65535 : 200'000 - 3 * 65536 - 1));
      CHECK(sent[i].command.cdw14 == (opcode == Opcode::write_uncorrectable ? 0 : 5 + i * 65536));
      CHECK(sent[i].command.data == nullptr);
    }
  }
}

TEST_CASE("memory given to an opcode that moves no blocks is refused, nothing is sent") {
  for (const Opcode opcode : {Opcode::verify, Opcode::write_zeroes, Opcode::write_uncorrectable}) {
    Script script(plain_16b);
    Bytes data(512), metadata(8);
    Io io = io_of(opcode, 1);
    io.memory.data = memory_of(data);
    CHECK(script.ns->transfer(io).error().code == Errc::wrong_length);
    io.memory = {{}, memory_of(metadata)};
    CHECK(script.ns->transfer(io).error().code == Errc::wrong_length);
    CHECK(script.transport->sent().empty());
  }
}

TEST_CASE(
    "zeroes with an application tag of FFFFh are refused as a write is, a verify with it is not") {
  Script script(plain_16b);
  for (const Opcode opcode : {Opcode::write_zeroes, Opcode::verify}) {
    Io io = io_of(opcode);
    io.app_tag = 0xFFFF;
    const auto result = script.ns->transfer(io);
    CHECK(result.has_value() == (opcode == Opcode::verify));
    if (!result) CHECK(result.error().code == Errc::unprotecting_app_tag);
  }
}

TEST_CASE("a flush is one command without blocks, memory or tags") {
  Script script(plain_16b);
  REQUIRE(script.ns->flush().has_value());
  REQUIRE(script.transport->sent().size() == 1);
  const Command& command = script.transport->sent()[0].command;
  CHECK(static_cast<unsigned>(command.opcode) == 0);
  CHECK(command.nsid == 7);
  CHECK((command.cdw10 | command.cdw11 | command.cdw12 | command.cdw13 | command.cdw14 |
         command.cdw15) == 0);
  CHECK(command.data == nullptr);
  CHECK(command.data_len == 0);
}

TEST_CASE("a compare is split so that the host's PI fits, also if the device owns the PI") {
  // MDTS is 128 KiB. A compare has no PRACT, so its blocks always travel with their metadata.
  const PiFormat format = make_format({512, 8, extended, type_1});
  const auto [device, ns] = open_emulated(format, {.mdts = 5});
  Random random(test_seed());
  Bytes data = random_bytes(random, 300 * 512);
  Io io{.opcode = Opcode::write, .slba = 7, .block_count = 300, .memory = {memory_of(data), {}}};
  REQUIRE(ns->transfer(io).has_value());
  io.opcode = Opcode::compare;
  for (const PiOwner owner : {PiOwner::host, PiOwner::device}) {
    CAPTURE(owner == PiOwner::device);
    io.pi = owner;
    CHECK(ns->queue().max_blocks(owner, Opcode::compare) <= (128u << 10) / 520);
    CHECK(ns->transfer(io).has_value());
    check_all_slots_are_back(*ns);
  }
}

TEST_CASE("a placement handle or stream is asked for by writes alone") {
  for (const Opcode opcode :
       {Opcode::read, Opcode::verify, Opcode::compare, Opcode::write_zeroes}) {
    CAPTURE(static_cast<unsigned>(opcode));
    Bytes data(512);
    Script script(plain_16b);
    Io io = io_of(opcode, 1);
    if (transfers_blocks(traits_of(opcode))) io.memory.data = memory_of(data);
    io.directive_type = 2;
    io.directive_value = 1;
    REQUIRE(script.ns->queue().submit(io).has_value());
    const Command& command = script.transport->sent().back().command;
    CHECK((command.cdw12 & 0x00F00000) == 0);
    CHECK(command.cdw13 == 0);
  }
}

TEST_SUITE_END();
