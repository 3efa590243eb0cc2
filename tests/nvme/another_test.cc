// Several queues on one namespace, each in a thread of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "nvme/emulated_namespace.h"
#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr unsigned thread_count = 4;

std::unique_ptr<Namespace> open_namespace(const std::string& device) {
  auto ns = Namespace::open(device);
  REQUIRE(ns.has_value());
  return std::move(*ns);
}

// Runs `work(namespace, index)` in threads; each gets a namespace of its own.
template <typename Work>
void in_threads(const Namespace& ns, Work work) {
  std::vector<std::unique_ptr<Namespace>> all;
  for (unsigned i = 0; i < thread_count; ++i) {
    auto another = ns.another({.depth = 4});
    REQUIRE(another.has_value());
    all.push_back(std::move(*another));
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; ++i) threads.emplace_back([&, i] { work(*all[i], i); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::byte> blocks_of(const Namespace& ns, std::uint64_t count, unsigned fill) {
  return std::vector<std::byte>(count * ns.format().data_size(), static_cast<std::byte>(fill));
}

}  // namespace

TEST_SUITE_BEGIN("another");

TEST_CASE("threads with a queue each write and read one namespace, and every block is whole") {
  const auto ns = open_namespace("emu:ds=512,ms=8,pi=1,size=1M");
  std::atomic<unsigned> failures = 0;
  // Neighbouring blocks of different threads, and one run of blocks that all of them write.
  in_threads(*ns, [&](Namespace& own, unsigned index) {
    for (unsigned round = 0; round < 50; ++round) {
      auto data = blocks_of(own, 1, 1 + index);
      for (std::uint64_t lba = index; lba < 64; lba += thread_count) {
        failures += !own.transfer({.opcode = Opcode::write, .slba = lba, .block_count = 1,
                                   .memory = {memory_of(data), {}}});
      }
      auto shared = blocks_of(own, 16, 1 + index);
      failures += !own.transfer({.opcode = Opcode::write, .slba = 100, .block_count = 16,
                                 .memory = {memory_of(shared), {}}});
      failures += !own.transfer({.slba = 100, .block_count = 16, .memory = {memory_of(shared), {}}});
      // A command is carried out as a whole.
      failures += std::adjacent_find(shared.begin(), shared.end(), std::not_equal_to<>()) != shared.end();
    }
  });
  CHECK(failures == 0);
  auto data = blocks_of(*ns, 64, 0);
  REQUIRE(ns->transfer({.block_count = 64, .memory = {memory_of(data), {}}}));
  for (std::uint64_t lba = 0; lba < 64; ++lba) {
    CHECK(data[lba * 512] == static_cast<std::byte>(1 + lba % thread_count));
  }
}

TEST_CASE("zone appends of several queues get blocks of their own") {
  const auto ns = open_namespace("emu:ds=512,ms=8,pi=1,size=1M,zone_size=1024");
  std::mutex mutex;
  std::set<std::uint64_t> places;
  in_threads(*ns, [&](Namespace& own, unsigned index) {
    auto data = blocks_of(own, 1, index);
    for (unsigned i = 0; i < 100; ++i) {
      const auto place = own.zone_append({.opcode = Opcode::zone_append, .block_count = 1,
                                          .memory = {memory_of(data), {}}});
      const std::lock_guard lock(mutex);
      if (place) places.insert(*place);
    }
  });
  CHECK(places.size() == thread_count * 100);
}

TEST_CASE("another queue outlives the namespace that it came from") {
  auto ns = open_namespace("emu:ds=512,ms=8,pi=1,size=1M");
  auto data = blocks_of(*ns, 1, 0x5A);
  REQUIRE(ns->transfer({.opcode = Opcode::write, .slba = 7, .block_count = 1,
                        .memory = {memory_of(data), {}}}));
  auto another = ns->another();
  REQUIRE(another.has_value());
  ns.reset();
  auto copy = blocks_of(**another, 1, 0);
  REQUIRE((*another)->transfer({.slba = 7, .block_count = 1, .memory = {memory_of(copy), {}}}));
  CHECK(copy == data);
}

TEST_CASE("a device that goes is gone for every queue") {
  const auto ns = open_namespace("emu:ds=512,ms=8,pi=1,size=1M,fault=remove@1");
  const auto another = ns->another();
  REQUIRE(another.has_value());
  auto data = blocks_of(*ns, 1, 0);
  for (Namespace* each : {ns.get(), another->get()}) {
    const auto read = each->transfer({.block_count = 1, .memory = {memory_of(data), {}}});
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().os_errno == ENODEV);
  }
}

TEST_CASE("a transport that stands alone says so") {
  const PiFormat format = make_format({512, 8, MetadataLayout::separate, PiType::type_1});
  ScriptedTransport transport(format, 1000);
  const auto another = transport.another();
  REQUIRE_FALSE(another.has_value());
  CHECK(another.error().os_errno == EOPNOTSUPP);
}
