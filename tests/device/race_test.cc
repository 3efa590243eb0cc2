// The reason for bounce memory, on a device that really fetches and fills memory later: buffers
// that another thread rewrites all the time.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "blocks.h"

namespace nvpi::test {
namespace {

constexpr std::size_t depth = 16;
constexpr std::uint64_t first_lba = 4000;
constexpr unsigned io_count = 10'000;

// Buffers for one block each. The thread goes on as long as the object lives.
class RewrittenBuffers {
 public:
  explicit RewrittenBuffers(std::size_t block_size)
      : words_(block_size / 8), buffers_(depth * words_, 1), thread_([this](std::stop_token stop) {
          for (std::uint64_t n = 1; !stop.stop_requested(); ++n) {
            for (std::size_t i = 0; i < depth; ++i) {
              std::atomic_ref(buffers_[i * words_ + n % words_])
                  .store(n, std::memory_order_relaxed);
            }
          }
        }) {}
  UserMemory memory(std::size_t i) { return {&buffers_[i * words_], words_ * 8}; }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> buffers_;
  std::jthread thread_;
};

struct Tally {
  unsigned done = 0;
  unsigned guard_errors = 0;  // told by the device, or found by the host
  unsigned other_errors = 0;
};

// Single blocks at depth, one after the other, from first_lba on.
Tally race(Namespace& ns, Opcode opcode, TransferMode mode) {
  RewrittenBuffers buffers(ns.format().data_size());
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < depth; ++i) idle.push_back(i);
  Tally tally;
  for (unsigned started = 0; tally.done < io_count;) {
    for (; !idle.empty() && started < io_count; ++started) {
      REQUIRE(ns.queue().submit({.opcode = opcode,
                                 .slba = first_lba + started,
                                 .block_count = 1,
                                 .memory = {buffers.memory(idle.back()), {}},
                                 .mode = mode,
                                 .cookie = idle.back()}));
      idle.pop_back();
    }
    const auto on_done = [&](const IoDone& done) {
      idle.push_back(done.cookie);
      ++tally.done;
      if (done.outcome) return;
      const Error& error = done.outcome.error();
      const bool is_guard =
          opcode == Opcode::write ? error.status.code() == 0x282 : error.code == Errc::pi_mismatch;
      ++(is_guard ? tally.guard_errors : tally.other_errors);
    };
    const auto reaped = ns.queue().reap(on_done, std::chrono::seconds(60));
    REQUIRE(reaped);
    REQUIRE(*reaped > 0);
  }
  CHECK(tally.other_errors == 0);
  CHECK(ns.queue().pool().free_count() == ns.queue().pool().slot_count());
  return tally;
}

// Every block on the medium fits its PI, told by the host alone.
std::uint64_t consistent_blocks(Namespace& ns) {
  Bytes data(std::size_t{io_count} * ns.format().data_size());
  const auto counts = ns.transfer({.slba = first_lba,
                                   .block_count = io_count,
                                   .memory = {UserMemory(data), {}},
                                   .device_checks = PiChecks::none()});
  return counts ? counts->verified : 0;
}

TEST_CASE("guest: R31: 10,000 writes of changing buffers: bounced no guard error, zero-copy some") {
  Target target(format_table().front());
  const Tally bounced = race(target.ns(), Opcode::write, TransferMode::bounce);
  CHECK(consistent_blocks(target.ns()) == io_count);
  const Tally lazy = race(target.ns(), Opcode::write, TransferMode::lazy);
  CHECK(consistent_blocks(target.ns()) == io_count);
  const Tally zero_copy = race(target.ns(), Opcode::write, TransferMode::zero_copy);
  MESSAGE("guard errors of ", io_count, " writes: bounce ", bounced.guard_errors, ", lazy ",
          lazy.guard_errors, ", zero-copy ", zero_copy.guard_errors);
  CHECK(bounced.guard_errors == 0);
  CHECK(lazy.guard_errors == 0);
  CHECK(zero_copy.guard_errors > 0);
  CHECK(consistent_blocks(target.ns()) == io_count);  // what the device refused, it did not write
}

TEST_CASE("guest: R32: 10,000 reads into changing buffers: false alarms by zero-copy alone") {
  Target target(format_table().front());
  Bytes data = random_bytes(std::size_t{io_count} * target.format().data_size(), 61);
  Io io = write_of(first_lba, data, target.format());
  io.app_tag = 0;
  REQUIRE(target.ns().transfer(io));
  const Tally bounced = race(target.ns(), Opcode::read, TransferMode::bounce);
  const Tally lazy = race(target.ns(), Opcode::read, TransferMode::lazy);
  const Tally zero_copy = race(target.ns(), Opcode::read, TransferMode::zero_copy);
  MESSAGE("mismatches of ", io_count, " reads: bounce ", bounced.guard_errors, ", lazy ",
          lazy.guard_errors, " (", target.ns().queue().benign_mismatches(),
          " read again), zero-copy ", zero_copy.guard_errors);
  CHECK(bounced.guard_errors == 0);
  CHECK(lazy.guard_errors == 0);
  CHECK(target.ns().queue().benign_mismatches() >= 3);
  CHECK(target.ns().queue().benign_mismatches() < 3 + depth);
  CHECK(zero_copy.guard_errors > 0);
}

}  // namespace
}  // namespace nvpi::test
