// Commands that do not come back: their slots are never handed out again, late completions do no
// harm, and nothing is reported as done that was not.
#include <doctest/doctest.h>

#include <cerrno>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

// A namespace whose device holds back the completion of its first command.
struct Rig {
  Rig() : format(make_format({512, 8, MetadataLayout::separate, PiType::type_1})) {
    auto made = std::make_unique<ScriptedTransport>(format, 1000);
    transport = made.get();
    transport->answer = [](const ScriptedTransport::Sent&,
                           std::size_t index) -> std::optional<std::int32_t> {
      if (index == 0) return {};
      return 0;
    };
    auto opened = Namespace::open(std::unique_ptr<Transport>(std::move(made)),
                                  {.queue = {.depth = 4}, .patience = 20ms});
    REQUIRE(opened.has_value());
    ns = std::move(*opened);
  }
  Result<VerifyCounts> transfer(Opcode opcode) {
    return ns->transfer(
        {.opcode = opcode, .slba = 8, .block_count = 4, .memory = {memory_of(data), {}}});
  }
  void time_out(Opcode opcode) {
    const auto result = transfer(opcode);
    REQUIRE_FALSE(result.has_value());
    REQUIRE(result.error().code == Errc::timed_out);
    CHECK(ns->queue().pool().abandoned_count() == 1);
    CHECK(ns->queue().pool().free_count() == 3);
  }

  PiFormat format;
  Bytes data = Bytes(4 * 512, std::byte{0x3C});
  ScriptedTransport* transport = nullptr;
  std::unique_ptr<Namespace> ns;
};

}  // namespace

TEST_SUITE_BEGIN("give up");

TEST_CASE("R36: after a time-out the queue takes no more work and hands no slot out again") {
  Rig rig;
  rig.time_out(Opcode::write);
  CHECK_FALSE(rig.ns->queue().has_room());
  const auto refused = rig.ns->queue().submit(
      {.opcode = Opcode::write, .block_count = 4, .memory = {memory_of(rig.data), {}}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::no_slot);
  CHECK(rig.transport->sent().size() == 1);
}

TEST_CASE("a transfer on a queue that was given up fails, also after the late completion came") {
  Rig rig;
  rig.time_out(Opcode::write);
  CHECK_FALSE(rig.transfer(Opcode::write).has_value());
  rig.transport->release_held();
  CHECK_FALSE(rig.transfer(Opcode::write).has_value());  // whose completion this is not
  CHECK_FALSE(rig.transfer(Opcode::write).has_value());  // and now nothing is in flight
  CHECK(rig.transport->sent().size() == 1);
}

TEST_CASE("R36: the late completion of a read that was given up delivers nothing") {
  Rig rig;
  rig.time_out(Opcode::read);
  rig.transport->release_held();
  rig.ns->queue().reap([](const IoDone&) {}, 1ms).value();
  CHECK(all_equal(rig.data, 0x3C));
  CHECK(rig.ns->queue().pool().abandoned_count() == 1);
  CHECK(rig.ns->queue().pool().free_count() == 3);
}

TEST_CASE("R36: closing after a time-out survives a completion that comes then") {
  Rig rig;
  rig.time_out(Opcode::read);
  rig.transport->release_held();
  rig.ns.reset();
  CHECK(all_equal(rig.data, 0x3C));
}

TEST_CASE("closing after a time-out does not wait once more for what was given up") {
  Rig rig;
  rig.time_out(Opcode::write);
  const auto start = std::chrono::steady_clock::now();
  rig.ns.reset();
  CHECK(std::chrono::steady_clock::now() - start < 2s);
}

TEST_CASE("an errno from reap gives the queue up and is what the transfer reports") {
  Rig rig;
  rig.transport->reap_error = ENODEV;
  const auto result = rig.transfer(Opcode::write);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::os);
  CHECK(result.error().os_errno == ENODEV);
  CHECK(rig.ns->queue().pool().abandoned_count() == 1);
  CHECK_FALSE(rig.ns->queue().has_room());
}

TEST_CASE("closing a queue waits for what is in flight") {
  const PiFormat format = make_format({512, 8, MetadataLayout::separate, PiType::type_1});
  ScriptedTransport transport(format, 1000);
  auto queue = Queue::create(transport, geometry_of(format, 1000), {.depth = 2});
  REQUIRE(queue.has_value());
  Bytes data(512);
  REQUIRE((*queue)
              ->submit({.opcode = Opcode::write, .block_count = 1, .memory = {memory_of(data), {}}})
              .has_value());
  queue->reset();
  Completion left;
  CHECK(transport.reap({&left, 1}, 0ms).value() == 0);
}

TEST_SUITE_END();
