// The reason for bounce memory. Goal: a buffer that changes in flight. Method: the emulated
// namespace calls back at the moment when the device fetches the memory of a command, and the
// "application" rewrites its buffer then. Deterministic, without threads; the same with a real
// thread below.
#include <doctest/doctest.h>

#include <cstring>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/mutator.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// Fetches `count` blocks from the media and counts those whose PI does not fit.
std::uint64_t bad_blocks_on_media(EmulatedNamespace& device, std::uint64_t slba,
                                  std::uint32_t count, Bytes& data) {
  const PiFormat format = device.medium().format();
  const std::size_t ds = format.data_size(), ms = format.metadata_size();
  data.resize(count * ds);
  Bytes metadata(count * ms);
  REQUIRE(device.medium().read_data(slba, data) == 0);
  REQUIRE(device.medium().read_metadata(slba, metadata) == 0);
  std::uint64_t bad = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto beside = std::span(metadata).subspan(i * ms, ms);
    const PiTags tags{.initial_ref_tag = slba};
    const Bytes tuple = reference_tuple(
        format.fields(),
        reference_tuple_of(format.fields(), tags, i, std::span(data).subspan(i * ds, ds), beside));
    const auto stored = beside.subspan(reference_pi_offset(format.fields()), tuple.size());
    bad += copy_of(stored) != tuple ? 1 : 0;
  }
  return bad;
}

const PiFormat::Fields formats[] = {
    {512, 8, separate, type_1},
    {512, 8, extended, type_1},
    {4096, 8, separate, type_1},
    {4096, 64, extended, type_1},
    {4096, 64, separate, type_1, last, guard_64b},
};

}  // namespace

TEST_SUITE_BEGIN("race");

TEST_CASE(
    "R31: a buffer rewritten in flight fails a zero-copy write and does not touch a bounced one") {
  for (const PiFormat::Fields& fields : formats) {
    CAPTURE(describe(fields));
    const PiFormat format = make_format(fields);
    AlignedBytes zero_copy_buffer(8ull * format.data_stride());
    AlignedBytes bounce_buffer(8ull * format.data_size());
    bool rewrite = true;
    const auto [device, ns] = open_emulated(
        format, {.on_transfer = [&](const Command&) {
          if (!rewrite) return;
          zero_copy_buffer.bytes()[3 * format.data_stride() + 100] ^= std::byte{1};
          std::fill(bounce_buffer.bytes().begin(), bounce_buffer.bytes().end(), std::byte{0xBB});
        }});
    const auto zero_copy = ns->transfer({.opcode = Opcode::write,
                                         .slba = 40,
                                         .block_count = 8,
                                         .memory = {zero_copy_buffer.memory(), {}},
                                         .mode = TransferMode::zero_copy});
    REQUIRE_FALSE(zero_copy.has_value());
    CHECK(zero_copy.error().code == Errc::status);
    CHECK(zero_copy.error().status.code() == 0x282);

    std::fill(bounce_buffer.bytes().begin(), bounce_buffer.bytes().end(), std::byte{0x11});
    REQUIRE(ns->transfer({.opcode = Opcode::write,
                          .slba = 40,
                          .block_count = 8,
                          .memory = {bounce_buffer.memory(), {}}})
                .has_value());
    CHECK(all_equal(bounce_buffer.bytes(), 0xBB));
    Bytes stored;
    CHECK(bad_blocks_on_media(*device, 40, 8, stored) == 0);
    CHECK(all_equal(stored, 0x11));  // what was guarded is what was stored
    rewrite = false;
    const auto back =
        ns->transfer({.slba = 40, .block_count = 8, .memory = {bounce_buffer.memory(), {}}});
    REQUIRE(back.has_value());
    CHECK(back->verified == 8);
    CHECK(all_equal(bounce_buffer.bytes(), 0x11));
    CHECK(ns->queue().pool().free_count() == ns->queue().pool().slot_count());
  }
}

TEST_CASE(
    "a buffer rewritten in flight under PRACT or without checks is stored as the device sees it") {
  const PiFormat format = make_format({512, 8, separate, type_1});
  AlignedBytes buffer(4 * 512);
  const auto [device, ns] = open_emulated(
      format, {.on_transfer = [&](const Command&) { buffer.bytes()[0] ^= std::byte{1}; }});
  Io io{.opcode = Opcode::write,
        .block_count = 4,
        .memory = {buffer.memory(), {}},
        .mode = TransferMode::zero_copy,
        .pi = PiOwner::device};
  CHECK(ns->transfer(io).has_value());
  Bytes stored;
  CHECK(bad_blocks_on_media(*device, 0, 4, stored) == 0);
  // Nobody looks: the damage is on the media, and only a check on the way back finds it.
  io.pi = PiOwner::host;
  io.device_checks = PiChecks::none();
  CHECK(ns->transfer(io).has_value());
  CHECK(bad_blocks_on_media(*device, 0, 4, stored) == 1);
}

TEST_CASE(
    "R31: a thread that rewrites the buffer during thousands of writes at depth: bounce has no "
    "error") {
  for (const PiFormat::Fields& fields : {formats[0], formats[3]}) {
    CAPTURE(describe(fields));
    const PiFormat format = make_format(fields);
    const auto [device, ns] = open_emulated(format, {.block_count = 256});
    AlignedBytes memory(8ull * format.data_stride());
    const Mutator mutator(memory.bytes(), format.data_stride(), format.data_size());
    Queue& queue = ns->queue();
    std::uint64_t done = 0, failed = 0;
    const std::uint64_t wanted = 3000;
    for (std::uint64_t submitted = 0; done < wanted;) {
      while (submitted < wanted && queue.has_room()) {
        const UserMemory data = memory.memory().subview(0, 8ull * format.data_size());
        REQUIRE(queue
                    .submit({.opcode = Opcode::write,
                             .slba = submitted++ % 32 * 8,
                             .block_count = 8,
                             .memory = {data, {}}})
                    .has_value());
      }
      const auto count = queue.reap(
          [&](const IoDone& io) {
            ++done;
            failed += io.outcome ? 0 : 1;
          },
          std::chrono::seconds(1));
      REQUIRE(count.has_value());
    }
    CHECK(failed == 0);
    Bytes stored;
    std::uint64_t bad = 0;
    for (std::uint64_t slba = 0; slba < 256; slba += 8) {
      bad += bad_blocks_on_media(*device, slba, 8, stored);
    }
    CHECK(bad == 0);

    // The same harness over zero-copy sees guard errors, or it would prove nothing.
    std::uint64_t mismatches = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (mismatches == 0 && std::chrono::steady_clock::now() < end) {
      const auto result = ns->transfer({.opcode = Opcode::write,
                                        .block_count = 8,
                                        .memory = {memory.memory(), {}},
                                        .mode = TransferMode::zero_copy});
      mismatches += !result && result.error().status.code() == 0x282 ? 1 : 0;
    }
    CHECK(mismatches > 0);
  }
}

TEST_CASE("R32: a thread that rewrites the target of reads at depth: bounce has no error") {
  const PiFormat::Fields wide{4096, 16, separate, type_1, last, guard_32b, 16};
  for (const PiFormat::Fields& fields : {formats[0], formats[2], wide}) {
    CAPTURE(describe(fields));
    const PiFormat format = make_format(fields);
    const auto [device, ns] = open_emulated(format);
    Bytes content(64ull * fields.data_size, std::byte{0x21});
    const Io write{.opcode = Opcode::write, .block_count = 64, .memory = {memory_of(content), {}}};
    REQUIRE(ns->transfer(write).has_value());
    Bytes target(content.size());
    // Pieces as an application may have them: not of whole blocks, not aligned.
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < target.size(); at += 100) {
      pieces.push_back({target.data() + at, std::min<std::size_t>(100, target.size() - at)});
    }
    const Mutator mutator{std::span<std::byte>(target)};
    std::uint64_t failed = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end) {
      const UserMemory memory{std::span<const iovec>(pieces)};
      failed += ns->transfer({.block_count = 64, .memory = {memory, {}}}) ? 0 : 1;
    }
    CHECK(failed == 0);
  }
}

TEST_SUITE_END();
