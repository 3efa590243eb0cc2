// Who is right, when the device refuses a read with a PI error?
#include <doctest/doctest.h>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t slba = 40, blocks = 600;
constexpr std::uint16_t app = 0x1234;

// A long run of good blocks, in several commands.
struct Rig {
  explicit Rig(const PiFormat::Fields& fields)
      : format(make_format(fields)), data(blocks * fields.data_size) {
    auto opened = open_emulated(format);
    device = opened.device;
    ns = std::move(opened.ns);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
    REQUIRE(ns->transfer(io(Opcode::write)).has_value());
    REQUIRE(ns->queue().max_blocks(PiOwner::host) < blocks / 2);
  }
  Io io(Opcode opcode) {
    Io result{.opcode = opcode,
              .slba = slba,
              .block_count = blocks,
              .memory = {memory_of(data), {}},
              .app_tag = app,
              .storage_tag = 3 & format.storage_tag_max()};
    if (format.type() == type_2) result.ref_tag = 0x77;
    return result;
  }
  Error refused(const Io& io) {
    const auto result = ns->transfer(io);
    REQUIRE_FALSE(result.has_value());
    REQUIRE(result.error().code == Errc::status);
    REQUIRE(result.error().status.is_pi_error());
    return result.error();
  }
  PiFormat format;
  Bytes data;
  EmulatedNamespace* device = nullptr;
  std::unique_ptr<Namespace> ns;
};

const PiFormat::Fields formats[] = {
    {512, 8, separate, type_1},
    {512, 8, extended, type_2},
    {512, 16, separate, type_3, first},
    {4096, 16, separate, type_2, last, guard_64b, 16},
    {4096, 64, extended, type_1, last, guard_32b, 16},
};

}  // namespace

TEST_SUITE_BEGIN("recheck");

TEST_CASE(
    "a recheck names the blocks that the device meant, and touches no memory of the caller's") {
  for (const PiFormat::Fields& fields : formats) {
    for (const PiOwner owner : {PiOwner::host, PiOwner::device}) {
      CAPTURE(describe(fields));
      CAPTURE(owner == PiOwner::device);
      Rig rig(fields);
      damage(*rig.device, slba + blocks - 3);
      damage(*rig.device, slba + blocks - 2);
      Io io = rig.io(Opcode::read);
      io.pi = owner;
      const Error error = rig.refused(io);
      CHECK(error.slba > slba);  // not in the first command
      rig.data.assign(rig.data.size(), std::byte{0xEE});
      std::vector<std::uint64_t> named;
      const auto sink = [&](const PiMismatch& mismatch) {
        CHECK(mismatch.tag == PiTag::guard);
        named.push_back(mismatch.lba);
        return true;
      };
      io.on_mismatch = sink;
      const auto checked = rig.ns->recheck(io, error);
      REQUIRE_FALSE(checked.has_value());
      CHECK(checked.error().code == Errc::pi_mismatch);
      CHECK(checked.error().mismatch_count == 2);
      CHECK(checked.error().mismatch.lba == slba + blocks - 3);
      CHECK(checked.error().mismatch.tag == PiTag::guard);
      CHECK(checked.error().mismatch.stored != checked.error().mismatch.computed);
      CHECK(named == std::vector{slba + blocks - 3, slba + blocks - 2});
      CHECK(all_equal(rig.data, 0xEE));
      check_all_slots_are_back(*rig.ns);
    }
  }
}

TEST_CASE("a recheck names the tag that was not the expected one") {
  struct Wrong {
    PiTag tag;
    void (*change)(Io& io);
  };
  const Wrong wrongs[] = {{PiTag::app_tag, [](Io& io) { io.app_tag ^= 0x0100; }},
                          {PiTag::storage_tag, [](Io& io) { io.storage_tag ^= 1; }},
                          {PiTag::ref_tag, [](Io& io) { io.ref_tag = 0x78; }}};
  for (const Wrong& wrong : wrongs) {
    Rig rig({4096, 16, separate, type_2, last, guard_64b, 16});
    Io io = rig.io(Opcode::read);
    wrong.change(io);
    const Error error = rig.refused(io);
    CHECK(error.slba == slba);
    const auto checked = rig.ns->recheck(io, error);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().mismatch.tag == wrong.tag);
    CHECK(checked.error().mismatch.lba == slba);
    CHECK(checked.error().mismatch_count == error.block_count);
  }
}

TEST_CASE("a recheck makes the checks that the device made, also if the host was to make none") {
  Rig rig({512, 8, separate, type_1});
  damage(*rig.device, slba + 1);
  Io io = rig.io(Opcode::read);
  io.checks = PiChecks::none();
  const Error error = rig.refused(io);
  CHECK(rig.ns->recheck(io, error).error().mismatch.lba == slba + 1);
  io.device_checks = {false, true, true, true};  // as if the guard had not been asked for
  const auto checked = rig.ns->recheck(io, error);
  REQUIRE(checked.has_value());
  CHECK(checked->verified == error.block_count);
}

TEST_CASE("a device that is wrong is found out: the host finds nothing") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  auto made = std::make_unique<ScriptedTransport>(format, 1000);
  ScriptedTransport* const transport = made.get();
  transport->answer = [](const ScriptedTransport::Sent&,
                         std::size_t index) -> std::optional<std::int32_t> {
    return index == 0 ? 0x284 : 0;
  };
  transport->on_read = [&](const Command& command) {
    CHECK((command.cdw12 & 0x3D000000) == 0);  // no checks, no PRACT
    generate(format, {.initial_ref_tag = command.cdw10},
             {command.data, command.metadata, command.block_count()});
  };
  auto ns = Namespace::open(std::unique_ptr<Transport>(std::move(made)), {});
  REQUIRE(ns.has_value());
  AlignedBytes memory(8 * 512);
  for (const TransferMode mode :
       {TransferMode::bounce, TransferMode::zero_copy, TransferMode::lazy}) {
    const Io io{.slba = 16, .block_count = 8, .memory = {memory.memory(), {}}, .mode = mode};
    const Error error{.code = Errc::status, .status = Status(0x284), .slba = 20, .block_count = 4};
    const auto checked = (*ns)->recheck(io, error);
    if (transport->sent().size() == 1) continue;  // the lie itself
    REQUIRE(checked.has_value());
    CHECK(checked->verified == 4);
    CHECK(transport->sent().back().command.cdw10 == 20);
    CHECK(transport->sent().back().command.cdw14 == 20);
  }
  CHECK(transport->sent().size() == 3);
}

TEST_CASE("a recheck that cannot read says why") {
  Rig rig({512, 8, separate, type_1});
  damage(*rig.device, slba + 1);
  const Io io = rig.io(Opcode::read);
  const Error error = rig.refused(io);
  Io broken = rig.io(Opcode::write_uncorrectable);
  broken.memory = {};
  REQUIRE(rig.ns->transfer(broken).has_value());
  const auto checked = rig.ns->recheck(io, error);
  CHECK(checked.error().code == Errc::status);
  CHECK(checked.error().status.code() == 0x281);
}

TEST_CASE("a verify that the device refuses can be rechecked like a read") {
  Rig rig({512, 8, separate, type_1});
  damage(*rig.device, slba + 1);
  Io io = rig.io(Opcode::verify);
  io.memory = {};
  const Error error = rig.refused(io);
  const auto checked = rig.ns->recheck(io, error);
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == Errc::pi_mismatch);
  CHECK(checked.error().mismatch.lba == slba + 1);
}

TEST_SUITE_END();
