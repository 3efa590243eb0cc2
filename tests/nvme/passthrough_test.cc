// Commands as they are: the driver looks at their lengths and at nothing else.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

using Lengths = Queue::Lengths;

struct Rig {
  explicit Rig(const PiFormat::Fields& fields = {512, 8, separate, type_1})
      : format(make_format(fields)) {
    auto made = std::make_unique<ScriptedTransport>(format, 1000);
    transport = made.get();
    auto opened = Namespace::open(std::unique_ptr<Transport>(std::move(made)),
                                  {.queue = {.depth = 2, .slot_size = 8192}, .patience = 20ms});
    REQUIRE(opened.has_value());
    ns = std::move(*opened);
  }
  Result<std::uint64_t> run(const Command& command, std::size_t data_size,
                            std::size_t metadata_size, Lengths lengths = Lengths::checked) {
    data.assign(data_size, std::byte{0x3C});
    metadata.assign(metadata_size, std::byte{0x5D});
    return ns->passthrough(command, {memory_of(data), memory_of(metadata)}, lengths);
  }
  PiFormat format;
  ScriptedTransport* transport = nullptr;
  std::unique_ptr<Namespace> ns;
  Bytes data, metadata;
};

Command raw(unsigned opcode, std::uint32_t cdw10 = 0, std::uint32_t cdw12 = 0) {
  return {.opcode = static_cast<Opcode>(opcode), .nsid = 7, .cdw10 = cdw10, .cdw12 = cdw12};
}

struct Case {
  std::string_view name;
  Command command;
  std::size_t data, metadata;  // what it takes
};

const Case cases[] = {
    {"flush", raw(0x00), 0, 0},
    {"write, 4 blocks", raw(0x01, 0, 3), 4 * 512, 4 * 8},
    {"read, 4 blocks", raw(0x02, 0, 3), 4 * 512, 4 * 8},
    {"compare, 1 block", raw(0x05, 999, 0), 512, 8},
    {"read, PRACT: no metadata moves", raw(0x02, 0, 0x20000003), 4 * 512, 0},
    {"write uncorrectable", raw(0x04, 0, 7), 0, 0},
    {"write zeroes", raw(0x08, 0, 999), 0, 0},
    {"verify", raw(0x0C, 0, 999), 0, 0},
    {"dataset management, 3 ranges", raw(0x09, 2), 48, 0},
    {"copy, 3 ranges, format 0", raw(0x19, 0, 0x0002), 96, 0},
    {"copy, 3 ranges, format 1", raw(0x19, 0, 0x0102), 120, 0},
    {"copy, 3 ranges, format 3", raw(0x19, 0, 0x0302), 120, 0},
    {"zone append", raw(0x7D, 0, 1), 2 * 512, 2 * 8},
};

}  // namespace

TEST_SUITE_BEGIN("passthrough");

TEST_CASE(
    "R01, R02: a command is sent with exactly the memory that it takes, and refused with any "
    "other") {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Rig rig;
    REQUIRE(rig.run(c.command, c.data, c.metadata).has_value());
    REQUIRE(rig.transport->sent().size() == 1);
    const Command& sent = rig.transport->sent()[0].command;
    CHECK(sent.opcode == c.command.opcode);
    CHECK(sent.cdw10 == c.command.cdw10);
    CHECK(sent.cdw12 == c.command.cdw12);
    CHECK(sent.data_len == c.data);
    CHECK(sent.metadata_len == c.metadata);
    CHECK((sent.data != nullptr) == (c.data > 0));
    CHECK((sent.metadata != nullptr) == (c.metadata > 0));
    for (const auto& [data, metadata] : {std::pair{c.data + 4, c.metadata},
                                         {c.data, c.metadata + 8},
                                         {c.data / 2 + 1, c.metadata},
                                         {c.data, c.metadata / 2 + 1}}) {
      const auto refused = rig.run(c.command, data, metadata);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == Errc::wrong_length);
      CHECK(refused.error().limit == (data == c.data ? c.metadata : c.data));
    }
    CHECK(rig.transport->sent().size() == 1);
    check_all_slots_are_back(*rig.ns);
  }
}

TEST_CASE("lengths in the command itself do not count, those of the memory do") {
  Rig rig;
  Command command = raw(0x01, 0, 3);
  command.data_len = 77;
  command.metadata_len = 78;
  REQUIRE(rig.run(command, 4 * 512, 4 * 8).has_value());
  CHECK(rig.transport->sent()[0].command.data_len == 4 * 512);
  CHECK(rig.transport->sent()[0].command.metadata_len == 4 * 8);
}

TEST_CASE("a caller who knows better sends other lengths, but never more than a slot holds") {
  Rig rig;
  REQUIRE(rig.run(raw(0x01, 0, 3), 512, 8, Lengths::trusted).has_value());
  CHECK(rig.transport->sent()[0].command.data_len == 512);
  CHECK(rig.transport->sent()[0].command.metadata_len == 8);
  REQUIRE(rig.run(raw(0x02, 5000, 3), 8192, 0, Lengths::trusted).has_value());  // past the end, too
  CHECK(rig.transport->sent()[1].command.metadata == nullptr);
  for (const Lengths lengths : {Lengths::checked, Lengths::trusted}) {
    const auto data = rig.run(raw(0x01, 0, 16), 8193, 17 * 8, lengths);
    CHECK(data.error().code == Errc::wrong_length);
    CHECK(data.error().field == "data");
    CHECK(data.error().limit == 8192);
    const auto metadata = rig.run(raw(0x01, 0, 3), 4 * 512, 16 * 8 + 1, lengths);
    CHECK(metadata.error().code == Errc::wrong_length);
  }
  CHECK(rig.transport->sent().size() == 2);
  check_all_slots_are_back(*rig.ns);
}

TEST_CASE("blocks outside of the namespace are refused") {
  Rig rig;
  for (const unsigned opcode : {0x04u, 0x08u, 0x0Cu}) {
    CHECK(rig.run(raw(opcode, 999, 0), 0, 0).has_value());
    CHECK(rig.run(raw(opcode, 999, 1), 0, 0).error().code == Errc::out_of_range);
    CHECK(rig.run(raw(opcode, 1000, 0), 0, 0).error().code == Errc::out_of_range);
  }
  CHECK(rig.run(raw(0x02, 997, 3), 4 * 512, 4 * 8).error().code == Errc::out_of_range);
}

TEST_CASE("an unknown opcode moves bytes in the direction of its low bits") {
  Rig rig;
  rig.transport->answer = [](const ScriptedTransport::Sent& sent,
                             std::size_t) -> std::optional<std::int32_t> {
    std::memset(sent.command.data, 0x99,
                sent.command.data_len);  // a device that writes to all it can reach
    return 0;
  };
  REQUIRE(rig.run(raw(0x82), 100, 0).has_value());
  CHECK(all_equal(rig.data, 0x99));
  REQUIRE(rig.run(raw(0x81), 100, 0).has_value());
  CHECK(all_equal(rig.data, 0x3C));
  rig.transport->answer = {};
  CHECK(rig.run(raw(0x80), 100, 0).error().code == Errc::wrong_length);
  CHECK(rig.run(raw(0x80), 0, 0).has_value());
}

TEST_CASE("R26: a command that fails delivers nothing and reports its status as it is") {
  for (const std::int32_t result : {0x281, 0x4002, -EIO}) {
    CAPTURE(result);
    Rig rig;
    rig.transport->answer = [=](const ScriptedTransport::Sent& sent,
                                std::size_t) -> std::optional<std::int32_t> {
      std::memset(sent.command.data, 0x99, sent.command.data_len);
      return result;
    };
    const auto failed = rig.run(raw(0x02, 0, 3), 4 * 512, 4 * 8);
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().code == (result < 0 ? Errc::os : Errc::status));
    if (result > 0) CHECK(failed.error().status.raw() == result);
    if (result < 0) CHECK(failed.error().os_errno == -result);
    CHECK(all_equal(rig.data, 0x3C));
    CHECK(all_equal(rig.metadata, 0x5D));
    check_all_slots_are_back(*rig.ns);
  }
}

TEST_CASE("R35: memory in any pieces and at any address goes out and comes back whole") {
  Random random(test_seed());
  for (const MetadataLayout layout : {separate, extended}) {
    const PiFormat format = make_format({512, 8, layout, type_1});
    const auto [device, ns] = open_emulated(format);
    const TransferLength length = transfer_length(format, 9, false);
    const Bytes data = random_bytes(random, length.data),
                metadata = random_bytes(random, length.metadata);
    Command command = make_io(Opcode::write, 1, 30, 9);  // no checks: the PI is not looked at
    const Scattered out = scatter(random, data), beside_out = scatter(random, metadata);
    REQUIRE(ns->passthrough(command, {out.memory(), beside_out.memory()}).has_value());
    command.opcode = Opcode::read;
    const Scattered in = scatter(random, Bytes(data.size())),
                    beside = scatter(random, Bytes(metadata.size()));
    REQUIRE(ns->passthrough(command, {in.memory(), beside.memory()}).has_value());
    CHECK(in.gathered() == data);
    CHECK(beside.gathered() == metadata);
    CHECK(in.surroundings_intact());
    CHECK(beside.surroundings_intact());
    check_all_slots_are_back(*ns);
  }
}

TEST_CASE("a command that does not come back costs its slot, and everything after it is refused") {
  Rig rig;
  rig.transport->answer = [](const ScriptedTransport::Sent&, std::size_t) {
    return std::optional<std::int32_t>();
  };
  CHECK(rig.run(raw(0x0C, 0, 0), 0, 0).error().code == Errc::timed_out);
  CHECK(rig.ns->queue().pool().abandoned_count() == 1);
  rig.transport->answer = {};
  CHECK_FALSE(rig.run(raw(0x0C, 0, 0), 0, 0).has_value());
  CHECK_FALSE(rig.ns->flush().has_value());
  CHECK(rig.transport->sent().size() == 1);
}

TEST_CASE("a full queue takes no command, and no slot is lost by asking") {
  Rig rig;
  Queue& queue = rig.ns->queue();
  REQUIRE(queue.submit(raw(0x00), {}, 1).has_value());
  REQUIRE(queue.submit(raw(0x0C, 0, 0), {}, 2).has_value());
  CHECK(queue.submit(raw(0x00), {}, 3).error().code == Errc::no_slot);
  std::uint64_t cookies = 0;
  REQUIRE(queue.reap([&](const IoDone& done) { cookies += done.cookie; }, 1s).has_value());
  CHECK(cookies == 3);
  rig.transport->submit_fails_at = rig.transport->submits();
  CHECK(queue.submit(raw(0x00), {}, 4).error().code == Errc::os);
  check_all_slots_are_back(*rig.ns);
}

TEST_CASE(
    "trusted lengths that are too short for the ranges are refused by the emulated namespace") {
  const auto [device, ns] = open_emulated(make_format({512, 8, separate, type_1}));
  Bytes one_range(16);
  const Command deallocate{.opcode = Opcode::dataset_management, .nsid = 1, .cdw10 = 1, .cdw11 = 4};
  const auto refused = ns->passthrough(deallocate, {memory_of(one_range), {}}, Lengths::trusted);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().status.code() == 0x00F);
}

TEST_SUITE_END();
