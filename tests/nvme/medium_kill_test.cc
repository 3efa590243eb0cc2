// An image survives its process: one that writes blocks is killed at any moment, and every block
// then is what it was before or what was written, with the metadata that belongs to it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t block_count = 64;
constexpr unsigned rounds = 60;

// Shared with the child: which version of a block it began to write last, which one was
// acknowledged, and how many writes the child has begun.
struct Ledger {
  volatile std::uint64_t begun[block_count];
  volatile std::uint64_t acknowledged[block_count];
  std::atomic<std::uint64_t> writes;
};

void fill(std::span<std::byte> block, std::uint64_t version) {
  for (std::size_t i = 0; i + 8 <= block.size(); i += 8) std::memcpy(&block[i], &version, 8);
}

// Writes until it is killed. Never returns; reports by its exit status what must not happen.
[[noreturn]] void write_for_ever(const std::string& device, Ledger& ledger, std::uint64_t version,
                                 std::uint64_t seed) {
  const auto ns = Namespace::open(device, {.queue = {.depth = 2, .huge_pages = false}});
  if (!ns) _exit(2);
  const std::size_t ds = (*ns)->format().data_size();
  Random random(seed);
  for (;; ++version) {
    const std::uint64_t count = 1 + below(random, 16),
                        slba = below(random, block_count - count + 1);
    Bytes bytes(count * ds);
    for (std::size_t i = 0; i < count; ++i) fill(std::span(bytes).subspan(i * ds, ds), version);
    for (std::size_t i = 0; i < count; ++i) ledger.begun[slba + i] = version;
    ++ledger.writes;
    if (!(*ns)->transfer({.opcode = Opcode::write,
                          .slba = slba,
                          .block_count = count,
                          .memory = {memory_of(bytes), {}},
                          .app_tag = static_cast<std::uint16_t>(version % 1000)})) {
      _exit(3);
    }
    for (std::size_t i = 0; i < count; ++i) ledger.acknowledged[slba + i] = version;
  }
}

// What a block holds is from now on what it may keep.
void check_blocks(const std::string& device, Ledger& ledger) {
  const auto ns = Namespace::open(device);
  REQUIRE(ns.has_value());
  const std::size_t ds = (*ns)->format().data_size();
  for (std::uint64_t lba = 0; lba < block_count; ++lba) {
    Bytes block(ds), whole(ds);
    std::uint64_t version = 0;
    const auto read = [&](std::uint16_t app_tag, const PiChecks& checks) {
      return (*ns)->transfer({.slba = lba,
                              .block_count = 1,
                              .memory = {memory_of(block), {}},
                              .checks = checks,
                              .device_checks = checks,
                              .app_tag = app_tag});
    };
    REQUIRE(read(0, PiChecks::none()).has_value());
    std::memcpy(&version, block.data(), 8);
    CAPTURE(lba);
    CHECK(read(static_cast<std::uint16_t>(version % 1000), {}).has_value());
    fill(whole, version);
    CHECK(block == whole);
    const bool old_or_new = version == ledger.begun[lba] || version == ledger.acknowledged[lba];
    CHECK(old_or_new);
    ledger.acknowledged[lba] = version;
  }
}

// The image of one block with a record in its journal, as a process leaves it that was killed in
// between. 4096 bytes of header, 512 of data, 8 of metadata, 1 of state: the journal begins at
// 8192.
struct Recorded {
  Recorded() : format(make_format({512, 8, MetadataLayout::separate, PiType::type_1})) {
    REQUIRE(Medium::in_file(file.path(), format, 1).has_value());
    fill(std::span(record).subspan(24, 512), 7);
    std::fill_n(record.begin() + 24 + 512, 8, std::byte{0x5A});
    record[24 + 520] = std::byte{1};
    const std::uint64_t count = 1, lba = 0;
    std::memcpy(&record[0], &count, 8);
    std::memcpy(&record[8], &lba, 8);
    Bytes covered(record.begin(), record.begin() + 16);
    covered.insert(covered.end(), record.begin() + 24, record.end());
    const std::uint64_t checksum = reference_guard(GuardType::guard_32b, covered);
    std::memcpy(&record[16], &checksum, 8);
  }
  // The block's state after the image was opened.
  BlockState after_opening() {
    std::fstream image(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    image.seekp(8192);
    image.write(reinterpret_cast<const char*>(record.data()),
                static_cast<std::streamsize>(record.size()));
    image.close();
    const auto medium = Medium::in_file(file.path(), format, 1);
    REQUIRE(medium.has_value());
    blocks.resize(format, 1);
    REQUIRE((*medium)->read(0, blocks) == 0);
    return blocks.states[0];
  }
  TemporaryFile file;
  PiFormat format;
  Bytes record = Bytes(24 + 512 + 8 + 1);
  StagedBlocks blocks;
};

}  // namespace

TEST_SUITE_BEGIN("medium");

TEST_CASE(
    "a process that is killed while it writes leaves every block old or new, never in between") {
  void* const memory =
      mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  for (const char* keys :
       {"ds=512,ms=16,pi=1,pif=16,size=32Ki", "ds=4096,ms=8,pi=1,mset=1,size=256Ki"}) {
    CAPTURE(std::string(keys));
    Ledger& ledger = *new (memory) Ledger();
    const TemporaryFile file;
    const std::string device = "emu:file=" + file.path();
    REQUIRE(Namespace::open(device + "," + keys).has_value());
    {
      const auto ns = Namespace::open(device);
      Bytes zeros(block_count * (*ns)->format().data_size());
      REQUIRE((*ns)->transfer(
          {.opcode = Opcode::write, .block_count = block_count, .memory = {memory_of(zeros), {}}}));
    }
    Random random(test_seed());
    for (unsigned round = 0; round < rounds; ++round) {
      ledger.writes = 0;
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) write_for_ever(device, ledger, 1 + round * 1'000'000ull, random());
      // A slow machine takes its time to open the image; the moment counts from the second write.
      int status = 0;
      while (ledger.writes < 2) REQUIRE(waitpid(child, &status, WNOHANG) == 0);
      usleep(static_cast<useconds_t>(below(random, 8000)));
      REQUIRE(kill(child, SIGKILL) == 0);
      REQUIRE(waitpid(child, &status, 0) == child);
      REQUIRE(WIFSIGNALED(status));
      check_blocks(device, ledger);
    }
    std::uint64_t written = 0;
    for (const std::uint64_t version : ledger.acknowledged) written += version > 0 ? 1 : 0;
    CHECK(written > 0);
  }
  munmap(memory, sizeof(Ledger));
}

TEST_CASE("a record in the journal is carried out when the image is opened, once") {
  Recorded image;
  CHECK(image.after_opening() == BlockState::written);
  CHECK(copy_of(image.blocks.data) ==
        Bytes(image.record.begin() + 24, image.record.begin() + 24 + 512));
  CHECK(all_equal(image.blocks.metadata, 0x5A));
  // It was forgotten: what is written later, also from outside, stays.
  const auto medium = Medium::in_file(image.file.path(), image.format, 1);
  REQUIRE(medium.has_value());
  const Bytes later(512, std::byte{9});
  REQUIRE((*medium)->write_data(0, later) == 0);
  Bytes back(512);
  REQUIRE((*medium)->read_data(0, back) == 0);
  CHECK(back == later);
}

TEST_CASE("damage from outside is not undone by the journal") {
  const TemporaryFile file;
  const PiFormat format = make_format({512, 8, MetadataLayout::separate, PiType::type_1});
  StagedBlocks blocks;
  blocks.resize(format, 2);
  blocks.states = {BlockState::written, BlockState::written};
  REQUIRE(Medium::in_file(file.path(), format, 8).value()->write(3, blocks.view(format, 0, 2)) ==
          0);
  {
    std::fstream image(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    image.seekp(4096 + 3 * 512);
    image.put('X');
  }
  Bytes back(512);
  REQUIRE(Medium::in_file(file.path(), format, 8).value()->read_data(3, back) == 0);
  CHECK(back[0] == std::byte{'X'});
}

TEST_CASE("a record that is not whole, or not of this image, is ignored") {
  for (const std::size_t damaged :
       {0u, 1u, 7u, 8u, 15u, 16u, 20u, 24u, 300u, 535u, 536u, 543u, 544u}) {
    CAPTURE(damaged);
    Recorded image;
    image.record[damaged] ^= std::byte{0x80};
    CHECK(image.after_opening() == BlockState::unwritten);
    CHECK(all_equal(image.blocks.data, 0));
  }
  for (const std::size_t size :
       {1u, 8u, 23u, 24u, 100u, 544u}) {  // the process was killed while recording
    CAPTURE(size);
    Recorded image;
    image.record.resize(size);
    CHECK(image.after_opening() == BlockState::unwritten);
    CHECK(all_equal(image.blocks.data, 0));
  }
}

TEST_SUITE_END();
