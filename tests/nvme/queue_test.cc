// The queue against a scripted device: what is sent, what is sent again, and which slot comes back
// when.
#include "nvme/queue.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int32_t dnr = 0x4000;

// A queue over a script, and user memory for one I/O of four blocks.
struct Rig {
  explicit Rig(const PiFormat::Fields& fields = {512, 8, separate, type_1}, std::uint32_t depth = 4)
      : format(make_format(fields)),
        transport(format, 1000),
        data(4ull * fields.data_size, std::byte{0x3C}),
        geometry(geometry_of(format, 1000)) {
    make_queue(depth);
  }
  void make_queue(std::uint32_t depth) {
    auto made = Queue::create(transport, geometry, {.depth = depth, .slot_size = 65536});
    REQUIRE(made.has_value());
    queue = std::move(*made);
  }
  Io io(Opcode opcode, std::uint64_t slba = 0x100) {
    return {.opcode = opcode, .slba = slba, .block_count = 4, .memory = {memory_of(data), {}}};
  }
  // Reaps until nothing is in flight, and returns what was done, in order.
  std::vector<IoDone> finish() {
    std::vector<IoDone> all;
    while (queue->in_flight() > 0) {
      const auto count = queue->reap([&](const IoDone& done) { all.push_back(done); }, 10ms);
      REQUIRE(count.has_value());
      REQUIRE(*count > 0);
    }
    CHECK(queue->pool().free_count() == queue->pool().slot_count());
    return all;
  }
  IoDone run(Opcode opcode) {
    REQUIRE(queue->submit(io(opcode)).has_value());
    const std::vector<IoDone> all = finish();
    REQUIRE(all.size() == 1);
    return all[0];
  }

  PiFormat format;
  ScriptedTransport transport;
  Bytes data;
  Geometry geometry;
  std::unique_ptr<Queue> queue;
};

// Answers the first `count` commands with `result` and the others with success.
auto fail_first(std::size_t count, std::int32_t result) {
  return [=](const ScriptedTransport::Sent&, std::size_t index) -> std::optional<std::int32_t> {
    return index < count ? result : 0;
  };
}

}  // namespace

TEST_SUITE_BEGIN("queue");

TEST_CASE("R44, R54: what passes is sent again from the same slot with the same bytes") {
  for (const std::int32_t result : {-EAGAIN, 0x370, 0x371, 0x302, 0x360 | 0x2000}) {
    CAPTURE(result);
    Rig rig;
    // The user's buffer changes between the attempts; the retry must not see it.
    rig.transport.answer = [&](const ScriptedTransport::Sent&,
                               std::size_t index) -> std::optional<std::int32_t> {
      std::fill(rig.data.begin(), rig.data.end(), static_cast<std::byte>(index));
      return index < 3 ? result : 0;
    };
    const IoDone done = rig.run(Opcode::write);
    CHECK(done.outcome.has_value());
    REQUIRE(rig.transport.sent().size() == 4);
    for (const auto& sent : rig.transport.sent()) CHECK(sent.same_as(rig.transport.sent()[0]));
    CHECK(all_equal(rig.transport.sent()[0].data, 0x3C));
  }
}

TEST_CASE("retries are bounded: an error that does not pass is reported as it is") {
  for (const std::int32_t result : {-EAGAIN, 0x370}) {
    CAPTURE(result);
    Rig rig;
    rig.transport.answer = fail_first(1000, result);
    const IoDone done = rig.run(Opcode::write);
    REQUIRE_FALSE(done.outcome.has_value());
    if (result < 0) {
      CHECK(done.outcome.error().code == Errc::os);
      CHECK(done.outcome.error().os_errno == EAGAIN);
    } else {
      CHECK(done.outcome.error().status.raw() == result);
    }
    CHECK(rig.transport.sent().size() > 1);
    CHECK(rig.transport.sent().size() <= 16);
  }
}

TEST_CASE("an error about the data, about the command, or with DNR is never retried") {
  for (const std::int32_t result :
       {0x181, 0x280, 0x281, 0x282, 0x283, 0x284, 0x285, 0x286, 0x287, 0x288, 0x002, 0x00B, 0x080,
        0x370 | dnr, 0x302 | dnr, 0x282 | dnr, -EIO, -EINTR, -ENODEV}) {
    CAPTURE(result);
    for (const Opcode opcode : {Opcode::write, Opcode::read}) {
      Rig rig;
      rig.transport.answer = fail_first(1000, result);
      const IoDone done = rig.run(opcode);
      CHECK(rig.transport.sent().size() == 1);
      REQUIRE_FALSE(done.outcome.has_value());
      const Error& error = done.outcome.error();
      if (result < 0) {
        CHECK(error.code == Errc::os);
        CHECK(error.os_errno == -result);
      } else {
        CHECK(error.code == Errc::status);
        CHECK(error.status.raw() == result);
      }
      CHECK(error.slba == 0x100);
      CHECK(error.block_count == 4);
    }
  }
}

TEST_CASE("R26: a read that fails leaves the user's memory as it was and verifies nothing") {
  for (const std::int32_t result : {0x281, 0x282 | dnr, -EIO}) {
    CAPTURE(result);
    Rig rig;
    rig.transport.answer = fail_first(1000, result);
    std::size_t mismatches = 0;
    const auto sink = [&](const PiMismatch&) { return ++mismatches > 0; };
    Io io = rig.io(Opcode::read);
    io.on_mismatch = sink;
    REQUIRE(rig.queue->submit(io).has_value());
    rig.finish();
    CHECK(all_equal(rig.data, 0x3C));
    CHECK(mismatches == 0);
  }
}

TEST_CASE(
    "R26: a read that succeeds with a wrong block is a mismatch, and its zeros are delivered") {
  Rig rig;
  rig.transport.on_read = [&](const Command& command) {
    std::memset(command.data, 0xD7, command.data_len);
    generate(rig.format, {.initial_ref_tag = 0x100}, {command.data, command.metadata, 4});
    command.data[2 * 512 + 5] ^= std::byte{1};
  };
  const IoDone done = rig.run(Opcode::read);
  REQUIRE_FALSE(done.outcome.has_value());
  CHECK(done.outcome.error().code == Errc::pi_mismatch);
  CHECK(done.outcome.error().mismatch.lba == 0x102);
  CHECK(done.outcome.error().mismatch.tag == PiTag::guard);
  CHECK(done.outcome.error().mismatch_count == 1);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(all_equal(std::span(rig.data).subspan(i * 512, 512), i == 2 ? 0x00 : 0xD7));
  }
}

TEST_CASE("R46: every slot is registered, and the command names the one that it uses") {
  Rig rig;
  REQUIRE(rig.transport.buffers().size() == 4);
  for (int i = 0; i < 4; ++i) REQUIRE(rig.queue->submit(rig.io(Opcode::write)).has_value());
  rig.finish();
  std::set<std::int32_t> used;
  for (const auto& sent : rig.transport.sent()) {
    const std::int32_t index = sent.command.fixed_buffer;
    used.insert(index);
    REQUIRE(index >= 0);
    REQUIRE(index < 4);
    CHECK(rig.transport.buffers()[static_cast<std::size_t>(index)].iov_base == sent.command.data);
  }
  CHECK(used.size() == 4);
}

TEST_CASE(
    "a refused fixed buffer is sent again without it, and fixed buffers are not used any more") {
  for (const std::int32_t result : {-EINVAL, -EOPNOTSUPP, -ENOMEM, -EFAULT}) {
    CAPTURE(result);
    Rig rig;
    rig.transport.answer = [&](const ScriptedTransport::Sent& sent,
                               std::size_t) -> std::optional<std::int32_t> {
      return sent.command.fixed_buffer >= 0 ? result : 0;
    };
    for (int i = 0; i < 3; ++i) REQUIRE(rig.queue->submit(rig.io(Opcode::write)).has_value());
    for (const IoDone& done : rig.finish()) CHECK(done.outcome.has_value());
    REQUIRE(rig.transport.sent().size() == 6);  // all three were in flight with it
    CHECK(rig.transport.sent()[3].same_as(rig.transport.sent()[0]));
    CHECK(rig.queue->fallbacks().test(static_cast<std::size_t>(Fallback::fixed_buffers)));
    CHECK(rig.run(Opcode::write).outcome.has_value());
    REQUIRE(rig.transport.sent().size() == 7);
    CHECK(rig.transport.sent()[6].command.fixed_buffer == -1);
  }
}

TEST_CASE("without a fixed buffer EINVAL is an error and no reason to try again") {
  Rig rig;
  rig.transport.takes_buffers = false;
  rig.queue.reset();
  rig.make_queue(4);
  CHECK(rig.queue->fallbacks().test(static_cast<std::size_t>(Fallback::fixed_buffers)));
  rig.transport.answer = fail_first(1000, -EINVAL);
  CHECK(rig.run(Opcode::write).outcome.error().os_errno == EINVAL);
  CHECK(rig.transport.sent().size() == 1);
}

TEST_CASE("completions may come in any order - each goes to the I/O it belongs to") {
  Rig rig;
  rig.transport.reversed = true;
  std::vector<Bytes> targets(4, Bytes(4 * 512));
  rig.transport.on_read = [&](const Command& command) {
    std::memset(command.data, static_cast<int>(command.slba()), command.data_len);
    generate(rig.format, {.initial_ref_tag = command.slba()}, {command.data, command.metadata, 4});
  };
  for (std::uint64_t i = 0; i < 4; ++i) {
    Io io = rig.io(Opcode::read, 10 * (i + 1));
    io.memory.data = memory_of(targets[i]);
    io.cookie = i;
    REQUIRE(rig.queue->submit(io).has_value());
  }
  std::uint64_t expected = 4;
  for (const IoDone& done : rig.finish()) {
    CHECK(done.cookie == --expected);
    CHECK(done.slba == 10 * (done.cookie + 1));
    CHECK(done.outcome->verified == 4);
  }
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(all_equal(targets[i], 10 * (i + 1) & 0xFF));
}

TEST_CASE("a full queue is back-pressure, and nothing is lost by trying") {
  Rig rig;
  for (int i = 0; i < 4; ++i) REQUIRE(rig.queue->submit(rig.io(Opcode::write)).has_value());
  CHECK_FALSE(rig.queue->has_room());
  const auto refused = rig.queue->submit(rig.io(Opcode::write));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::no_slot);
  CHECK(rig.finish().size() == 4);
  CHECK(rig.run(Opcode::write).outcome.has_value());
}

TEST_CASE("R34: a submit that the transport refuses gives its slot back") {
  Rig rig;
  rig.transport.submit_fails_at = 1;
  REQUIRE(rig.queue->submit(rig.io(Opcode::write)).has_value());
  CHECK_FALSE(rig.queue->submit(rig.io(Opcode::write)).has_value());
  CHECK(rig.queue->in_flight() == 1);
  CHECK(rig.queue->pool().free_count() == 3);
  CHECK(rig.finish().size() == 1);
}

TEST_CASE("R34: a retry that the transport refuses ends the I/O with the error it had") {
  Rig rig;
  rig.transport.answer = fail_first(1, 0x370);
  rig.transport.submit_fails_at = 1;
  const IoDone done = rig.run(Opcode::write);
  REQUIRE_FALSE(done.outcome.has_value());
  CHECK(done.outcome.error().status.raw() == 0x370);
}

TEST_CASE("R02: what cannot be right is refused before anything is submitted") {
  Rig rig({512, 8, extended, type_1});
  Bytes wrong(1024 * 4);
  Io io = rig.io(Opcode::read);
  for (const std::size_t size : {0, 512, 520, 2047, 2049, 2080}) {
    io.memory.data = memory_of(wrong).subview(0, size);
    const auto refused = rig.queue->submit(io);
    CAPTURE(size);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::wrong_length);
    CHECK(refused.error().value == size);
    CHECK(refused.error().limit == 2048);
  }
  Bytes large(512 * 1000);
  io = {.block_count = 1000, .memory = {memory_of(large), {}}};
  CHECK(rig.queue->submit(io).error().code == Errc::wrong_length);  // more than a slot holds
  CHECK(rig.transport.submits() == 0);
  CHECK(rig.queue->pool().free_count() == 4);
}

TEST_SUITE_END();
