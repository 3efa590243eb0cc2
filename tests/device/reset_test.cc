// A controller that is reset, or goes away, while commands are in flight.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "blocks.h"

namespace nvpi::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t depth = 16;
constexpr std::uint64_t first_lba = 1000;

void write_to(const std::string& path) {
  std::ofstream file(path);
  file << "1\n";
}

struct Load {
  unsigned succeeded = 0, failed = 0;
  std::set<std::string> errors;
};

void note(Load& load, const Error& error) {
  ++load.failed;
  const bool typed = error.code == Errc::os || error.code == Errc::status;
  CHECK(typed);
  load.errors.insert(error.code == Errc::os ? "errno " + std::to_string(error.os_errno)
                                            : "status " + std::to_string(error.status.code()));
}

// Writes and reads at depth while `disturb` runs in a thread; goes on for a moment after it.
template <typename Disturb>
Load run_under_load(Namespace& ns, Disturb disturb) {
  const std::size_t block_size = ns.format().data_size();
  std::vector<Bytes> buffers;
  for (std::uint32_t i = 0; i < depth; ++i) buffers.push_back(random_bytes(block_size, i));
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < depth; ++i) idle.push_back(i);
  std::atomic<bool> disturbed = false;
  std::jthread thread([&] {
    std::this_thread::sleep_for(300ms);
    disturb();
    std::this_thread::sleep_for(500ms);
    disturbed = true;
  });
  Load load;
  const auto deadline = Clock::now() + 60s;
  while (!disturbed || idle.size() < depth) {
    REQUIRE(Clock::now() < deadline);
    while (!disturbed && !idle.empty()) {
      const std::size_t i = idle.back();
      const auto submitted = ns.queue().submit({.opcode = i % 2 == 0 ? Opcode::write : Opcode::read,
                                                .slba = first_lba + i,
                                                .block_count = 1,
                                                .memory = {UserMemory(buffers[i]), {}},
                                                .cookie = i});
      if (!submitted) {
        note(load, submitted.error());
        break;
      }
      idle.pop_back();
    }
    const auto on_done = [&](const IoDone& done) {
      idle.push_back(done.cookie);
      if (done.outcome) {
        ++load.succeeded;
      } else {
        note(load, done.outcome.error());
      }
    };
    REQUIRE(ns.queue().reap(on_done, 1s));
  }
  CHECK(ns.queue().pool().free_count() == ns.queue().pool().slot_count());
  std::string errors;
  for (const std::string& error : load.errors) errors += " " + error;
  MESSAGE(load.succeeded, " succeeded, ", load.failed, " failed:", errors);
  return load;
}

// The queue of the namespace works (again).
bool works(Namespace& ns) {
  Bytes data = random_bytes(ns.format().data_size(), 71), copy(data.size());
  return ns.transfer(write_of(first_lba, data, ns.format())) &&
         ns.transfer(read_of(first_lba, copy, ns.format())) && copy == data;
}

template <typename Condition>
bool comes_true(Condition condition) {
  const auto deadline = Clock::now() + 30s;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

void fill(Namespace& ns) {
  Bytes data = random_bytes(depth * ns.format().data_size(), 70);
  Io io = write_of(first_lba, data, ns.format());
  io.app_tag = 0;
  REQUIRE(ns.transfer(io));
}

TEST_CASE(
    "guest: R41: a controller reset under load fails commands by name and the queue works on") {
  Target target(format_table().front());
  fill(target.ns());
  const Load load =
      run_under_load(target.ns(), [] { write_to("/sys/class/nvme/nvme0/reset_controller"); });
  CHECK(load.succeeded > 0);
  CHECK(comes_true([&] { return works(target.ns()); }));
}

TEST_CASE(
    "guest: R41: a controller removed under load fails everything from then on, and comes back") {
  {
    Target target(format_table().front());
    fill(target.ns());
    const Load load =
        run_under_load(target.ns(), [] { write_to("/sys/class/nvme/nvme0/device/remove"); });
    CHECK(load.succeeded > 0);
    CHECK(load.failed > 0);
    CHECK_FALSE(works(target.ns()));
    CHECK(target.ns().queue().in_flight() == 0);
    CHECK(target.ns().queue().pool().abandoned_count() == 0);
  }
  write_to("/sys/bus/pci/rescan");
  REQUIRE(comes_true([] { return !find_node(format_table().front().nsid).empty(); }));
  Target target(format_table().front());
  CHECK(works(target.ns()));
}

}  // namespace
}  // namespace nvpi::test
