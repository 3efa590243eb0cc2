// Faults of an emulated namespace: which of them the protection information finds and which it
// cannot, that a seed repeats a run, and that the driver stays whole under each.
#include "nvme/faults.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

const PiFormat::Fields plain{512, 8, separate, type_1};
constexpr std::uint32_t depth = 4;

struct Opened {
  EmulatedNamespace* device;
  std::unique_ptr<Namespace> ns;
};

Opened open_with(const std::string& faults, std::uint64_t seed = 1,
                 const PiFormat::Fields& fields = plain) {
  auto list = Faults::parse(faults);
  REQUIRE(list.has_value());
  auto device = EmulatedNamespace::create(
      {.format = fields, .block_count = 64, .capacity = 16, .faults = {seed, std::move(*list)}});
  REQUIRE(device.has_value());
  EmulatedNamespace* const raw = device->get();
  auto ns = Namespace::open(std::unique_ptr<Transport>(std::move(*device)),
                            {.queue = {.depth = depth, .slot_size = 2048}, .patience = 5ms});
  REQUIRE(ns.has_value());
  return {raw, std::move(*ns)};
}

// Every block of a content has another byte.
Bytes content(std::uint64_t blocks, unsigned version, std::size_t block_size = 512) {
  Bytes bytes(blocks * block_size);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(version * 64 + i / block_size);
  }
  return bytes;
}

Result<VerifyCounts> transfer(Namespace& ns, Opcode opcode, std::uint64_t slba, Bytes& bytes) {
  return ns.transfer({.opcode = opcode,
                      .slba = slba,
                      .block_count = bytes.size() / ns.format().data_size(),
                      .memory = {memory_of(bytes), {}},
                      .device_checks = PiChecks::none()});
}

void check_no_slot_is_lost(Namespace& ns) {
  const BouncePool& pool = ns.queue().pool();
  CHECK(ns.queue().in_flight() == 0);
  CHECK(pool.free_count() + pool.abandoned_count() == pool.slot_count());
}

std::string text_of(const Result<VerifyCounts>& result) {
  if (result)
    return "ok " + std::to_string(result->verified) + " " + std::to_string(result->unprotected);
  const Error& error = result.error();
  return "error " + std::to_string(static_cast<int>(error.code)) + " " +
         std::to_string(error.os_errno) + " " + std::to_string(error.status.raw()) + " at " +
         std::to_string(error.slba) + " " + std::to_string(error.mismatch.lba) + " " +
         std::to_string(error.mismatch_count);
}

}  // namespace

TEST_SUITE_BEGIN("faults");

TEST_CASE("which fault which tag finds: a lost write and a stale read are found by none") {
  struct Row {
    const char* fault;
    PiFormat::Fields fields;
    std::optional<PiTag> found_by;
  };
  PiFormat::Fields type_3_format = plain;
  type_3_format.type = type_3;
  const Row rows[] = {
      {"bitflip-data@3", plain, PiTag::guard},  // the third of the reads, of those below
      {"bitflip-data-write@2", plain, PiTag::guard},
      {"torn-write@2", plain, PiTag::guard},
      {"misdirected-write@2", plain, PiTag::ref_tag},
      {"misdirected-write@2", type_3_format, {}},  // its reference tag says nothing of the place
      {"lost-write@2", plain, {}},                 // the old block is as good as the new one
      {"stale-read@3", plain, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.fault);
    const Opened opened = open_with(row.fault, 7, row.fields);
    Bytes all = content(64, 0), old = content(1, 1), written = content(1, 2), back(512);
    REQUIRE(transfer(*opened.ns, Opcode::write, 8, old).has_value());      // 1st
    REQUIRE(transfer(*opened.ns, Opcode::write, 8, written).has_value());  // 2nd
    std::vector<PiMismatch> found;
    const auto collect = [&](const PiMismatch& mismatch) {
      found.push_back(mismatch);
      return true;
    };
    for (unsigned pass = 0; pass < 3; ++pass) {
      back.assign(512, std::byte{0});
      const auto read = transfer(*opened.ns, Opcode::read, 8, back);
      if (!read) CHECK(all_equal(back, 0));
    }
    const auto whole = opened.ns->transfer({.opcode = Opcode::read,
                                            .block_count = 64,
                                            .memory = {memory_of(all), {}},
                                            .device_checks = PiChecks::none(),
                                            .on_mismatch = collect});
    REQUIRE(whole.has_value() == !row.found_by.has_value());
    CHECK(found.size() == (row.found_by ? 1u : 0u));
    if (row.found_by && !found.empty()) CHECK(found[0].tag == *row.found_by);
    const bool misplaced = std::string(row.fault).starts_with("misdirected");
    if (misplaced || std::string(row.fault) == "lost-write@2")
      CHECK(back == old);  // as if it were right
    if (row.found_by && !misplaced) CHECK(found[0].lba == 8);
    check_no_slot_is_lost(*opened.ns);
  }
}

TEST_CASE(
    "the application tag finds a block of another owner that was written to the right place") {
  const Opened opened = open_with("lost-write@2");
  Bytes bytes = content(1, 1), back(512);
  Io io{.opcode = Opcode::write,
        .slba = 3,
        .block_count = 1,
        .memory = {memory_of(bytes), {}},
        .app_tag = 1};
  REQUIRE(opened.ns->transfer(io).has_value());
  io.app_tag = 2;  // a generation number in the tag is what makes PI find a lost write
  REQUIRE(opened.ns->transfer(io).has_value());
  io.opcode = Opcode::read;
  io.memory = {memory_of(back), {}};
  io.device_checks = PiChecks::none();
  const auto read = opened.ns->transfer(io);
  REQUIRE_FALSE(read.has_value());
  REQUIRE(read.error().code == Errc::pi_mismatch);
  CHECK(read.error().mismatch.tag == PiTag::app_tag);
}

TEST_CASE(
    "a bit that flips in the metadata is found by the tag that it hits, by no check in none") {
  for (const char* fault : {"bitflip-metadata@1", "bitflip-metadata-write@1"}) {
    unsigned by_tag[4] = {};
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Opened opened = open_with(fault, seed);
      Bytes bytes = content(1, 1);
      REQUIRE(transfer(*opened.ns, Opcode::write, 5, bytes).has_value());
      const auto read = transfer(*opened.ns, Opcode::read, 5, bytes);
      REQUIRE_FALSE(read.has_value());
      ++by_tag[static_cast<unsigned>(read.error().mismatch.tag)];
      // At rest it stays as it is.
      CHECK_FALSE(transfer(*opened.ns, Opcode::read, 5, bytes).has_value());
    }
    CHECK(by_tag[static_cast<unsigned>(PiTag::guard)] > 0);
    CHECK(by_tag[static_cast<unsigned>(PiTag::app_tag)] > 0);
    CHECK(by_tag[static_cast<unsigned>(PiTag::ref_tag)] > 0);
  }
}

TEST_CASE("a stale read returns what the block held before, and only that once") {
  const Opened opened = open_with("stale-read@2");
  Bytes first = content(4, 1), second = content(4, 2), back(2048);
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, first).has_value());
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, second).has_value());
  REQUIRE(transfer(*opened.ns, Opcode::read, 8, back).has_value());
  CHECK(back == second);
  REQUIRE(transfer(*opened.ns, Opcode::read, 8, back).has_value());
  unsigned old_blocks = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto block = [&](Bytes& bytes) {
      return copy_of(std::span(bytes).subspan(512 * i, 512));
    };
    if (block(back) == block(second)) continue;
    CHECK(block(back) == block(first));
    ++old_blocks;
  }
  CHECK(old_blocks == 1);
  REQUIRE(transfer(*opened.ns, Opcode::read, 8, back).has_value());
  CHECK(back == second);
}

TEST_CASE("a misdirected write leaves the block it was meant for as it was") {
  const Opened opened = open_with("misdirected-write@2", 3);
  Bytes old = content(1, 1), written = content(1, 2), block(512);
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, old).has_value());
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, written).has_value());
  unsigned copies = 0;
  for (std::uint64_t lba = 0; lba < 64; ++lba) {
    REQUIRE(opened.device->medium().read_data(lba, block) == 0);
    if (block == written) ++copies;
    if (lba == 8) CHECK(block == old);
  }
  CHECK(copies == 1);
}

TEST_CASE(
    "an injected status or errno is what the command ends with, and the command is not carried "
    "out") {
  const Opened opened = open_with("status/0x281@2+errno/5@3");
  Bytes old = content(1, 1), written = content(1, 2), back(512);
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, old).has_value());
  const auto failed = transfer(*opened.ns, Opcode::write, 8, written);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == Errc::status);
  CHECK(failed.error().status.raw() == 0x281);
  const auto broken = transfer(*opened.ns, Opcode::write, 8, written);
  REQUIRE_FALSE(broken.has_value());
  CHECK(broken.error().code == Errc::os);
  CHECK(broken.error().os_errno == EIO);
  REQUIRE(transfer(*opened.ns, Opcode::read, 8, back).has_value());
  CHECK(back == old);
}

TEST_CASE("EAGAIN now and then is sent again and nobody notices") {
  const Opened opened = open_with("errno/11:0.3");
  Bytes bytes = content(64, 1), back(bytes.size());
  REQUIRE(transfer(*opened.ns, Opcode::write, 0, bytes).has_value());
  REQUIRE(transfer(*opened.ns, Opcode::read, 0, back).has_value());
  CHECK(back == bytes);
  check_all_slots_are_back(*opened.ns);
}

TEST_CASE("completions that are late or out of order change no result") {
  for (const char* fault : {"delay/1:0.3", "reorder:0.5", "delay/1:0.2+reorder:0.5"}) {
    CAPTURE(fault);
    const Opened opened = open_with(fault);
    Bytes bytes = content(64, 1), back(bytes.size());
    REQUIRE(transfer(*opened.ns, Opcode::write, 0, bytes).has_value());
    REQUIRE(transfer(*opened.ns, Opcode::read, 0, back).has_value());
    CHECK(back == bytes);
    check_all_slots_are_back(*opened.ns);
  }
}

TEST_CASE("a reordered completion overtakes an earlier one") {
  auto device = EmulatedNamespace::create({.format = plain,
                                           .block_count = 64,
                                           .capacity = 16,
                                           .faults = {1, Faults::parse("reorder@3").value()}});
  REQUIRE(device.has_value());
  for (std::uint64_t i = 1; i <= 4; ++i) {
    REQUIRE((*device)->submit({.opcode = Opcode::flush, .nsid = 1}, i).has_value());
  }
  Completion completions[4];
  REQUIRE((*device)->reap(completions, 1ms).value() == 4);
  CHECK(completions[2].user_data != 3);
  CHECK((completions[0].user_data == 3 || completions[1].user_data == 3));
  CHECK(completions[3].user_data == 4);
}

TEST_CASE("a delayed completion comes when its time has come, and others before it") {
  auto device = EmulatedNamespace::create({.format = plain,
                                           .block_count = 64,
                                           .capacity = 16,
                                           .faults = {1, Faults::parse("delay/20@1").value()}});
  REQUIRE(device.has_value());
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 1; i <= 2; ++i) {
    REQUIRE((*device)->submit({.opcode = Opcode::flush, .nsid = 1}, i).has_value());
  }
  Completion completions[4];
  REQUIRE((*device)->reap(completions, 1s).value() == 1);
  CHECK(completions[0].user_data == 2);
  CHECK((*device)->reap(completions, 0ms).value() == 0);
  REQUIRE((*device)->reap(completions, 10s).value() == 1);
  CHECK(completions[0].user_data == 1);
  CHECK(std::chrono::steady_clock::now() - start >= 20ms);
}

TEST_CASE("a completion that never comes times out, keeps its room and loses no slot") {
  const Opened opened = open_with("drop@2");
  Bytes bytes = content(1, 1);
  REQUIRE(transfer(*opened.ns, Opcode::write, 8, bytes).has_value());
  const auto start = std::chrono::steady_clock::now();
  const auto result = transfer(*opened.ns, Opcode::write, 8, bytes);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::timed_out);
  CHECK(std::chrono::steady_clock::now() - start >= 5ms);  // the patience
  CHECK(opened.ns->queue().pool().abandoned_count() == 1);
  check_no_slot_is_lost(*opened.ns);
  std::uint32_t room = 0;
  while (opened.device->submit({.opcode = Opcode::flush, .nsid = 1}, 0)) ++room;
  CHECK(room == opened.device->capacity() - 1);
}

TEST_CASE("a device that is removed answers everything with ENODEV from then on") {
  const Opened opened = open_with("remove@3");
  Bytes bytes = content(16, 1);  // four commands
  const auto result = transfer(*opened.ns, Opcode::write, 0, bytes);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::os);
  CHECK(result.error().os_errno == ENODEV);
  check_all_slots_are_back(*opened.ns);
  const auto again = transfer(*opened.ns, Opcode::read, 0, bytes);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().os_errno == ENODEV);
  CHECK(opened.device->identify(Cns::identify_controller).error().os_errno == ENODEV);
  check_all_slots_are_back(*opened.ns);
}

TEST_CASE("the same seed and the same commands make the same run, another seed another one") {
  const std::string faults =
      "bitflip-data:0.05+bitflip-metadata:0.05+bitflip-data-write:0.05+bitflip-metadata-write:0.05+"
      "misdirected-write:0.05+lost-write:0.05+torn-write:0.05+stale-read:0.05+status/0x286:0.05+"
      "errno/11:0.1+reorder:0.2";
  const auto run = [&](std::uint64_t seed) {
    const Opened opened = open_with(faults, seed);
    Random random(99);
    std::string log;
    for (unsigned i = 0; i < 300; ++i) {
      Bytes bytes = content(1 + below(random, 8), i);
      const Opcode opcode = coin(random) ? Opcode::write : Opcode::read;
      log +=
          text_of(transfer(*opened.ns, opcode, below(random, 56), bytes)) + " " + hex(bytes) + "\n";
    }
    check_all_slots_are_back(*opened.ns);
    Bytes medium(64 * 512);
    REQUIRE(opened.device->medium().read_data(0, medium) == 0);
    return log + hex(medium);
  };
  const std::string once = run(5);
  CHECK(run(5) == once);
  CHECK(run(6) != once);
}

// What arrives is what was written at some time, or zeros where a block was refused: never anything
// else.
TEST_CASE(
    "under every fault the driver delivers nothing unverified, loses no slot and does not hang") {
  for (const char* fault :
       {"bitflip-data:0.1", "bitflip-metadata:0.1", "bitflip-data-write:0.1",
        "bitflip-metadata-write:0.1", "misdirected-write:0.1", "lost-write:0.1", "torn-write:0.1",
        "stale-read:0.1", "status/0x281:0.1", "status/0x371:0.3", "errno/11:0.3", "errno/5:0.1",
        "delay/1:0.1", "reorder:0.3", "drop@40", "drop:0.05", "remove@40"}) {
    CAPTURE(fault);
    for (const TransferMode mode : {TransferMode::bounce, TransferMode::lazy}) {
      const Opened opened = open_with(fault, 11);
      Random random(3);
      const auto start = std::chrono::steady_clock::now();
      for (unsigned i = 0; i < 100; ++i) {
        const std::uint64_t slba = below(random, 48), count = 1 + below(random, 16);
        Bytes bytes(count * 512);
        for (std::size_t b = 0; b < count; ++b) {  // a block says where it belongs
          std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(b * 512), 512,
                      static_cast<std::byte>(slba + b + 1));
        }
        Io io{.opcode = Opcode::write,
              .slba = slba,
              .block_count = count,
              .memory = {memory_of(bytes), {}}};
        io.mode = mode;
        io.device_checks = PiChecks::none();
        if (coin(random)) {
          static_cast<void>(opened.ns->transfer(io));
          continue;
        }
        io.opcode = Opcode::read;
        bytes.assign(bytes.size(), std::byte{0});
        static_cast<void>(opened.ns->transfer(io));
        bool genuine = true;
        for (std::size_t b = 0; b < count; ++b) {
          const auto block = std::span(bytes).subspan(b * 512, 512);
          genuine &=
              all_equal(block, 0) || all_equal(block, static_cast<std::uint8_t>(slba + b + 1));
        }
        CHECK(genuine);
      }
      check_no_slot_is_lost(*opened.ns);
      CHECK(std::chrono::steady_clock::now() - start < 20s);
    }
  }
}

TEST_CASE("a fault is read with its value and when it strikes") {
  const auto list =
      Faults::parse("bitflip-data:0.01+status/0x281@3+errno/11:1+delay/5:1e-3+remove@1Ki");
  REQUIRE(list.has_value());
  REQUIRE(list->size() == 5);
  CHECK((*list)[0].kind == FaultKind::bitflip_data);
  CHECK((*list)[0].probability == doctest::Approx(0.01));
  CHECK((*list)[0].nth == 0);
  CHECK((*list)[1].kind == FaultKind::status);
  CHECK((*list)[1].value == 0x281);
  CHECK((*list)[1].nth == 3);
  CHECK((*list)[2].value == EAGAIN);
  CHECK((*list)[2].probability == 1);
  CHECK((*list)[3].value == 5);
  CHECK((*list)[4].nth == 1024);
}

TEST_CASE("a fault that makes no sense is refused with the key and the rule") {
  for (const char* text : {"",
                           "+",
                           "bitflip",
                           "bitflip-data",
                           "bitflip-data:",
                           "bitflip-data:0",
                           "bitflip-data:1.5",
                           "bitflip-data:-1",
                           "bitflip-data:nan",
                           "bitflip-data:0.1x",
                           "bitflip-data@0",
                           "bitflip-data@",
                           "bitflip-data@x",
                           "bitflip-data/1:0.1",
                           "status:0.1",
                           "status/:0.1",
                           "status/0:0.1",
                           "status/0x8000:0.1",
                           "errno/4096@1",
                           "delay/60001:1",
                           "drop:0.1+",
                           "+drop:0.1",
                           "drop:0.1++drop:0.1",
                           "drop:0.1@1",
                           "DROP:0.1"}) {
    CAPTURE(text);
    const auto list = Faults::parse(text);
    REQUIRE_FALSE(list.has_value());
    CHECK(list.error().code == Errc::bad_option);
    CHECK(list.error().detail == "fault");
    CHECK_FALSE(list.error().rule.empty());
  }
}

TEST_CASE("faults and their seed are keys of a device name") {
  const auto options =
      EmulatedNamespace::parse("size=64Ki,fault=drop@2+status/0x281:0.5,seed=0x10");
  REQUIRE(options.has_value());
  CHECK(options->faults.seed == 16);
  CHECK(options->faults.list.size() == 2);
  CHECK(EmulatedNamespace::parse("fault=lightning").error().detail == "fault");
}

TEST_CASE(
    "a service time holds: one command takes latency and transfer, many share the bandwidth") {
  const auto options =
      EmulatedNamespace::parse("size=4M,ds=4096,ms=8,read_us=3000,write_us=500,read_mbs=100");
  REQUIRE(options.has_value());
  auto device = EmulatedNamespace::create(*options);
  REQUIRE(device.has_value());
  const auto ns =
      Namespace::open(std::unique_ptr<Transport>(std::move(*device)), {.queue = {.depth = 8}});
  REQUIRE(ns.has_value());
  const auto time = [&](Opcode opcode, std::size_t size) {
    Bytes bytes(size);
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(transfer(**ns, opcode, 0, bytes).has_value());
    return std::chrono::steady_clock::now() - start;
  };
  CHECK(time(Opcode::write, 4096) >= 500us);
  // 4104 bytes at 100 MB/s take 41 us; 2 MiB and 4 KiB of metadata in four commands take 21.0 ms.
  const auto one = time(Opcode::read, 4096), many = time(Opcode::read, 2 << 20);
  CHECK(one >= 3041us);
  CHECK(many >= 24ms);
  CHECK(one < 1s);
  CHECK(many < 1s);
}

TEST_SUITE_END();
