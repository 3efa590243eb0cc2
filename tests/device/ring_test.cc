// What io_uring offers beyond the plain ring, and several queues in several threads, on devices.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "blocks.h"

namespace nvpi::test {
namespace {

struct Mode {
  const char* name;
  RingOptions ring;
};
constexpr Mode modes[] = {
    {"plain", {.single_issuer = false}},
    {"single issuer", {}},
    {"polled", {.single_issuer = false, .io_poll = true}},
    {"polled, single issuer", {.io_poll = true}},
    {"kernel thread", {.single_issuer = false, .sq_poll = true}},
    {"kernel thread, single issuer", {.sq_poll = true}},
    {"kernel thread, polled", {.io_poll = true, .sq_poll = true}},
};

// A second way to the namespace of the target. An emulated one has no ring.
std::unique_ptr<Namespace> open_again(Target& target, const RingOptions& ring) {
  auto ns = in_guest() ? Namespace::open(target.device(), {.ring = ring}) : target.ns().another();
  REQUIRE(ns.has_value());
  return std::move(*ns);
}

TEST_CASE("every kind of ring writes and reads with protection information, at depth and beyond it") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    for (const Mode& mode : modes) {
      CAPTURE(std::string(mode.name));
      const auto ns = open_again(target, mode.ring);
      const std::uint64_t count = 40 * ns->queue().max_blocks(PiOwner::host) / 16 + 3;
      Bytes data = random_bytes(count * format.data_size(), 7);
      Bytes copy(data.size());
      REQUIRE(ns->transfer(write_of(100, data, format)));
      const auto counts = ns->transfer(read_of(100, copy, format));
      REQUIRE(counts.has_value());
      CHECK(counts->verified == count);
      CHECK(copy == data);
      // An error of the device comes through as well: the other tag is never there.
      Io wrong = read_of(100, copy, format);
      wrong.block_count = 1;
      wrong.memory.data = UserMemory(copy.data(), format.data_size());
      wrong.app_tag = 0x4321;
      wrong.device_checks = {.guard = false, .app_tag = true, .storage_tag = false, .ref_tag = false};
      CHECK(code_of(ns->transfer(wrong)) == 0x283);
      // The guests have no polled queues and say nothing of it: their commands complete all the same.
      const Fallbacks& lost = ns->fallbacks();
      CHECK_FALSE(lost.test(static_cast<std::size_t>(Fallback::single_issuer)));
      CHECK_FALSE(lost.test(static_cast<std::size_t>(Fallback::sq_poll)));
    }
  });
}

TEST_CASE("a namespace opened by one thread is used by another") {
  on_every_target(has_pi, [](Target& target) {
    const auto ns = open_again(target, {});
    Bytes data = random_bytes(8 * target.format().data_size(), 3);
    Bytes copy(data.size());
    bool written = false, read = false;
    std::thread([&] {
      written = ns->transfer(write_of(64, data, target.format())).has_value();
      read = ns->transfer(read_of(64, copy, target.format())).has_value();
    }).join();
    CHECK(written);
    CHECK(read);
    CHECK(copy == data);
  });
}

TEST_CASE("several threads with a queue each work on one namespace") {
  on_every_target(has_pi, [](Target& target) {
    constexpr unsigned thread_count = 3;
    constexpr std::uint64_t run = 24;
    std::vector<std::unique_ptr<Namespace>> all;
    for (unsigned i = 0; i < thread_count; ++i) {
      auto another = target.ns().another({.depth = 8});
      REQUIRE(another.has_value());
      all.push_back(std::move(*another));
    }
    std::atomic<unsigned> failures = 0;
    const auto work = [&](unsigned index) {
      Bytes copy(run * target.format().data_size());
      for (unsigned round = 0; round < 20; ++round) {
        Bytes data = random_bytes(copy.size(), 100 * index + round);
        failures += !all[index]->transfer(write_of(200 + index * run, data, target.format()));
        failures += !all[index]->transfer(read_of(200 + index * run, copy, target.format()));
        failures += copy != data;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    CHECK(failures == 0);
  });
}

}  // namespace
}  // namespace nvpi::test
