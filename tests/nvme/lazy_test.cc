// Lazy reads: in the caller's memory while that goes well, and to the caller like bounced ones.
#include <doctest/doctest.h>

#include <cerrno>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

using Sent = ScriptedTransport::Sent;

constexpr std::uint8_t content = 0xD7, untouched = 0x3C;

// A queue over a device whose blocks are all D7h. What becomes of memory after the device wrote to
// it is the test's business, by the number of the command.
struct Rig {
  explicit Rig(const PiFormat::Fields& fields = {512, 8, separate, type_1})
      : format(make_format(fields)), transport(format, 1000), memory(4ull * fields.data_size) {
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{untouched});
    transport.on_read = [this](const Command& command) {
      std::fill_n(command.data, command.data_len, std::byte{content});
      if (format.has_pi()) {
        generate(format, {.initial_ref_tag = command.cdw10},
                 {command.data, command.metadata, command.block_count()});
      }
      if (afterwards) afterwards(command, transport.submits() - 1);
    };
    auto made = Queue::create(transport, geometry_of(format, 1000), {.depth = 2});
    REQUIRE(made.has_value());
    queue = std::move(*made);
  }
  Io io() {
    return {.slba = 0x100,
            .block_count = 4,
            .memory = {memory.memory(), {}},
            .mode = TransferMode::lazy};
  }
  IoDone run(const Io& io) {
    REQUIRE(queue->submit(io).has_value());
    IoDone result;
    unsigned count = 0;
    while (queue->in_flight() > 0) {
      const auto reaped = queue->reap([&](const IoDone& done) { result = done, ++count; }, 10ms);
      REQUIRE(reaped.has_value());
      REQUIRE(*reaped > 0);
    }
    CHECK(count == 1);
    CHECK(queue->pool().free_count() == queue->pool().slot_count());
    return result;
  }
  bool in_memory(const Command& command) { return command.data == memory.bytes().data(); }
  const Command& sent(std::size_t i) { return transport.sent().at(i).command; }
  std::span<std::byte> block(std::size_t i) {
    return memory.bytes().subspan(i * format.data_size(), format.data_size());
  }

  PiFormat format;
  ScriptedTransport transport;
  AlignedBytes memory;
  std::function<void(const Command&, std::size_t)> afterwards;
  std::unique_ptr<Queue> queue;
};

void spoil(const Command& command) {
  command.data[2 * 512 + 9] ^= std::byte{4};
}

}  // namespace

TEST_SUITE_BEGIN("lazy");

TEST_CASE("a lazy read goes straight to the caller's memory and is verified there") {
  Rig rig;
  const IoDone done = rig.run(rig.io());
  REQUIRE(done.outcome.has_value());
  CHECK(done.outcome->verified == 4);
  REQUIRE(rig.transport.sent().size() == 1);
  CHECK(rig.in_memory(rig.sent(0)));
  CHECK(rig.sent(0).fixed_buffer == -1);
  CHECK(all_equal(rig.memory.bytes(), content));
  CHECK(rig.queue->benign_mismatches() == 0);
}

TEST_CASE("R32: what the caller changed is read again through a slot and never reported") {
  Rig rig;
  rig.afterwards = [](const Command& command, std::size_t index) {
    if (index == 0) spoil(command);
  };
  unsigned mismatches = 0;
  const auto sink = [&](const PiMismatch&) { return ++mismatches > 0; };
  Io io = rig.io();
  io.on_mismatch = sink;
  const IoDone done = rig.run(io);
  REQUIRE(done.outcome.has_value());
  CHECK(done.outcome->verified == 4);
  CHECK(mismatches == 0);
  REQUIRE(rig.transport.sent().size() == 2);
  CHECK_FALSE(rig.in_memory(rig.sent(1)));
  CHECK(rig.sent(1).fixed_buffer >= 0);
  CHECK(rig.sent(1).cdw12 == rig.sent(0).cdw12);
  CHECK(rig.sent(1).cdw14 == rig.sent(0).cdw14);
  CHECK(all_equal(rig.memory.bytes(), content));
  CHECK(rig.queue->benign_mismatches() == 1);
}

TEST_CASE("a queue that saw three benign mismatches bounces from then on") {
  Rig rig;
  rig.afterwards = [&](const Command& command, std::size_t) {
    if (rig.in_memory(command)) spoil(command);
  };
  for (int i = 0; i < 5; ++i) CHECK(rig.run(rig.io()).outcome.has_value());
  // Three in the caller's memory and each again, then two through a slot at once.
  REQUIRE(rig.transport.sent().size() == 8);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(rig.in_memory(rig.sent(i)) == (i == 0 || i == 2 || i == 4));
  CHECK(rig.queue->benign_mismatches() == 3);
}

TEST_CASE("a real mismatch is reported once, leaves no wrong byte, and is not benign") {
  Rig rig;
  rig.afterwards = [](const Command& command, std::size_t) { spoil(command); };
  std::vector<std::uint64_t> named;
  const auto sink = [&](const PiMismatch& mismatch) {
    named.push_back(mismatch.lba);
    return true;
  };
  for (int i = 0; i < 5; ++i) {
    named.clear();
    Io io = rig.io();
    io.on_mismatch = sink;
    const IoDone done = rig.run(io);
    REQUIRE_FALSE(done.outcome.has_value());
    CHECK(done.outcome.error().code == Errc::pi_mismatch);
    CHECK(done.outcome.error().mismatch_count == 1);
    CHECK(done.outcome.error().mismatch.lba == 0x102);
    CHECK(named == std::vector<std::uint64_t>{0x102});
    for (std::size_t b = 0; b < 4; ++b) CHECK(all_equal(rig.block(b), b == 2 ? 0 : content));
  }
  CHECK(rig.queue->benign_mismatches() == 0);
  CHECK(rig.in_memory(rig.sent(8)));  // and the queue goes on reading in place
}

TEST_CASE("if the second read fails, nothing of the first one stays, and the failure is reported") {
  for (const std::int32_t result : {0x281, 0x282, -EIO}) {
    CAPTURE(result);
    Rig rig;
    rig.afterwards = [](const Command& command, std::size_t) { spoil(command); };
    rig.transport.answer = [=](const Sent&, std::size_t index) -> std::optional<std::int32_t> {
      return index == 0 ? 0 : result;
    };
    const IoDone done = rig.run(rig.io());
    REQUIRE_FALSE(done.outcome.has_value());
    CHECK(done.outcome.error().code == (result < 0 ? Errc::os : Errc::status));
    CHECK((all_equal(rig.block(2), 0) || all_equal(rig.block(2), untouched)));
    CHECK(rig.queue->benign_mismatches() == 0);
  }
}

TEST_CASE("if the second read cannot even be sent, nothing unverified stays") {
  Rig rig;
  rig.afterwards = [](const Command& command, std::size_t) { spoil(command); };
  rig.transport.submit_fails_at = 1;
  const IoDone done = rig.run(rig.io());
  REQUIRE_FALSE(done.outcome.has_value());
  CHECK((all_equal(rig.block(2), 0) || all_equal(rig.block(2), untouched)));
  CHECK(rig.queue->benign_mismatches() == 0);
}

TEST_CASE("R54: the second read is retried like any other") {
  Rig rig;
  rig.afterwards = [](const Command& command, std::size_t index) {
    if (index == 0) spoil(command);
  };
  rig.transport.answer = [](const Sent&, std::size_t index) -> std::optional<std::int32_t> {
    return index == 1 ? 0x370 : 0;
  };
  CHECK(rig.run(rig.io()).outcome.has_value());
  REQUIRE(rig.transport.sent().size() == 3);
  CHECK(rig.transport.sent()[2].same_as(rig.transport.sent()[1]));
  CHECK(all_equal(rig.memory.bytes(), content));
  CHECK(rig.queue->benign_mismatches() == 1);
}

TEST_CASE("unaligned, scattered and interleaved memory, writes and compares bounce") {
  Random random(test_seed());
  struct Row {
    const char* name;
    PiFormat::Fields format;
    Opcode opcode;
    bool bounces;
  };
  const Row rows[] = {{"aligned", {512, 8, separate, type_1}, Opcode::read, false},
                      {"no metadata", {512, 0}, Opcode::read, false},
                      {"extended", {512, 8, extended, type_1}, Opcode::read, true},
                      {"write", {512, 8, separate, type_1}, Opcode::write, true},
                      {"compare", {512, 8, separate, type_1}, Opcode::compare, true}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Rig rig(row.format);
    Io io = rig.io();
    io.opcode = row.opcode;
    CHECK(rig.run(io).outcome.has_value());
    CHECK(rig.in_memory(rig.sent(0)) == !row.bounces);
  }
  for (const std::size_t shift : {1, 2, 3}) {
    Rig rig;
    AlignedBytes memory(4 * 512, shift), metadata(4 * 8, shift);
    Io io = rig.io();
    io.memory.metadata = metadata.memory();
    CHECK(rig.run(io).outcome.has_value());
    CHECK_FALSE(rig.in_memory(rig.sent(0)));
    io.memory = {memory.memory(), {}};
    CHECK(rig.run(io).outcome.has_value());
    CHECK(rig.sent(1).data != memory.bytes().data());
    CHECK(all_equal(memory.bytes(), content));
  }
  Rig rig;
  const Scattered pieces(random, 4 * 512, 5);
  Io io = rig.io();
  io.memory.data = pieces.memory();
  CHECK(rig.run(io).outcome.has_value());
  CHECK(rig.sent(0).fixed_buffer >= 0);
  CHECK(all_equal(pieces.gathered(), content));
  CHECK(pieces.surroundings_intact());
}

TEST_CASE("a lazy read with PI of the device's or the caller's is in place and claims nothing") {
  for (const PiOwner owner : {PiOwner::device, PiOwner::caller}) {
    Rig rig;
    if (owner == PiOwner::device) rig.transport.on_read = {};
    Io io = rig.io();
    io.pi = owner;
    const IoDone done = rig.run(io);
    REQUIRE(done.outcome.has_value());
    CHECK(done.outcome->verified == 0);
    CHECK(rig.in_memory(rig.sent(0)));
    CHECK(rig.transport.sent().size() == 1);
  }
}

TEST_SUITE_END();
