// Copies on the emulated namespace.
#include <doctest/doctest.h>

#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t source = 100, destination = 200;
constexpr std::uint16_t app = 0x1234;

const PiFormat::Fields formats[] = {
    {512, 8, separate, type_1},
    {512, 8, extended, type_2},
    {512, 16, separate, type_3},
    {4096, 16, separate, type_1, last, guard_64b, 16},
    {4096, 64, extended, type_1, first, guard_32b, 16},
};

// Eight blocks with random content at `source`.
struct Rig {
  explicit Rig(const PiFormat::Fields& fields) : format(make_format(fields)) {
    auto opened = open_emulated(format);
    device = opened.device;
    ns = std::move(opened.ns);
    Random random(test_seed());
    data = random_bytes(random, 8ull * format.data_size());
    REQUIRE(ns->transfer(io(Opcode::write, source)).has_value());
  }
  Io io(Opcode opcode, std::uint64_t slba) {
    return {.opcode = opcode,
            .slba = slba,
            .block_count = 8,
            .memory = {memory_of(data), {}},
            .app_tag = app};
  }
  PiTags tags_at(std::uint64_t lba) const {
    return {.app_tag = app, .initial_ref_tag = format.type() == type_3 ? 0 : lba};
  }
  CopyRange range(std::uint64_t slba, std::uint32_t count) const {
    return {.slba = slba, .block_count = count, .expected = tags_at(slba)};
  }
  CopyRequest request(std::span<const CopyRange> ranges, bool pract) const {
    return {.ranges = ranges,
            .destination = destination,
            .descriptor_format = copy_descriptor_format(format),
            .write = {.pract = pract, .checks = PiChecks::none(), .tags = tags_at(destination)},
            .read_pract = pract};
  }
  std::uint16_t copy(const CopyRequest& request) {
    const auto result = ns->copy(request);
    if (result) return 0;
    REQUIRE(result.error().code == Errc::status);
    return result.error().status.code();
  }
  PiFormat format;
  EmulatedNamespace* device = nullptr;
  std::unique_ptr<Namespace> ns;
  Bytes data;
};

}  // namespace

TEST_SUITE_BEGIN("copy");

TEST_CASE("a copy without PRACT keeps the PI as it is: type 1 then fails its reference tag") {
  for (const PiFormat::Fields& fields : formats) {
    CAPTURE(describe(fields));
    Rig rig(fields);
    const CopyRange range = rig.range(source, 8);
    REQUIRE(rig.copy(rig.request({&range, 1}, false)) == 0);
    Bytes from(8ull * fields.metadata_size), to(from.size());
    REQUIRE(rig.device->medium().read_metadata(source, from) == 0);
    REQUIRE(rig.device->medium().read_metadata(destination, to) == 0);
    CHECK(from == to);

    const Bytes written = rig.data;
    Io io = rig.io(Opcode::read, destination);
    if (fields.type == type_2) io.ref_tag = source;
    if (fields.type == type_1) {
      CHECK(rig.ns->transfer(io).error().status.code() == 0x284);
      io.device_checks = PiChecks::none();
      const auto found = rig.ns->transfer(io);
      REQUIRE_FALSE(found.has_value());
      CHECK(found.error().mismatch.tag == PiTag::ref_tag);
      CHECK(found.error().mismatch_count == 8);
      continue;
    }
    CHECK(rig.ns->transfer(io).value().verified == 8);
    CHECK(rig.data == written);
  }
}

TEST_CASE("a copy with PRACT makes the PI anew, over several ranges and counting on") {
  for (const PiFormat::Fields& fields : formats) {
    CAPTURE(describe(fields));
    Rig rig(fields);
    Bytes expected = rig.data;
    const CopyRange ranges[] = {rig.range(source + 4, 4), rig.range(source, 1),
                                rig.range(source + 1, 3)};
    REQUIRE(rig.copy(rig.request(ranges, true)) == 0);
    CHECK(rig.ns->transfer(rig.io(Opcode::read, destination)).value().verified == 8);
    const auto middle = static_cast<std::ptrdiff_t>(expected.size() / 2);
    std::rotate(expected.begin(), expected.begin() + middle, expected.end());
    CHECK(rig.data == expected);
    check_all_slots_are_back(*rig.ns);
  }
}

TEST_CASE(
    "a copy is refused: PRACTs that differ 002h, another guard's descriptors 00Bh, formats 2, 3 "
    "002h") {
  for (const PiFormat::Fields& fields : formats) {
    CAPTURE(describe(fields));
    Rig rig(fields);
    const CopyRange range = rig.range(source, 8);
    CopyRequest request = rig.request({&range, 1}, true);
    request.read_pract = false;
    CHECK(rig.copy(request) == 0x002);
    request = rig.request({&range, 1}, false);
    request.read_pract = true;
    CHECK(rig.copy(request) == 0x002);
    request = rig.request({&range, 1}, false);
    request.descriptor_format ^= 1;
    CHECK(rig.copy(request) == 0x00B);
    request.descriptor_format = static_cast<std::uint8_t>(2 + copy_descriptor_format(rig.format));
    CHECK(rig.copy(request) == 0x002);
    check_all_slots_are_back(*rig.ns);
  }
  Rig plain({512, 0});
  const CopyRange range{.slba = source, .block_count = 8};
  CHECK(plain.copy({.ranges = {&range, 1}, .destination = destination}) == 0);
  CHECK(plain.copy({.ranges = {&range, 1}, .destination = destination, .descriptor_format = 1}) ==
        0x00B);
}

TEST_CASE("the source is checked against the tags of each range, each tag by its own status") {
  Rig rig({4096, 16, separate, type_2, last, guard_64b});
  const auto status_of = [&](PiChecks checks, PiTags expected) {
    const CopyRange ranges[] = {rig.range(source, 4), {source + 4, 4, 0, expected}};
    CopyRequest request = rig.request(ranges, false);
    request.read_checks = checks;
    return rig.copy(request);
  };
  const PiChecks all{true, true, false, true};
  CHECK(status_of(all, {app, 0xFFFF, 0, source + 4}) == 0);
  CHECK(status_of(all, {app, 0xFFFF, 0, source}) == 0x284);
  CHECK(status_of(all, {app ^ 1, 0xFFFF, 0, source + 4}) == 0x283);
  CHECK(status_of(all, {app ^ 1, 0xFFFE, 0, source + 4}) == 0);
  damage(*rig.device, source + 5);
  CHECK(status_of(all, {app, 0xFFFF, 0, source + 4}) == 0x282);
  CHECK(status_of(PiChecks::none(), {app, 0xFFFF, 0, source + 4}) == 0);
}

TEST_CASE("tags in the other byte order are other tags") {
  for (const PiFormat::Fields& fields :
       {formats[1], PiFormat::Fields{4096, 16, separate, type_2, last, guard_64b}}) {
    Rig rig(fields);
    const CopyRange range = rig.range(source, 8);
    CopyRequest request = rig.request({&range, 1}, false);
    request.read_checks.ref_tag = true;
    CHECK(rig.copy(request) == 0);
    request.tag_order = TagOrder::big_endian;
    CHECK(rig.copy(request) == 0x284);
  }
}

TEST_CASE("the completion names the first range that was not copied; those before it were") {
  Rig rig({512, 8, separate, type_1});
  const std::uint64_t end = rig.ns->block_count();
  const CopyRange ranges[] = {rig.range(source, 2), rig.range(source + 2, 2), rig.range(end - 1, 2),
                              rig.range(source, 1)};
  const RangeCommand made = make_copy(rig.format, 1, rig.request(ranges, true));
  IoDone done;
  REQUIRE(rig.ns->queue()
              .submit(made.command, {UserMemory::read_only(made.payload), {}}, 77)
              .has_value());
  REQUIRE(rig.ns->queue().reap([&](const IoDone& io) { done = io; }, 1s).has_value());
  CHECK(done.cookie == 77);
  CHECK(done.outcome.error().status.code() == 0x080);
  CHECK(done.dwords == 2);
  Bytes copied(4 * 512);
  REQUIRE(rig.device->medium().read_data(destination, copied) == 0);
  CHECK(copied == Bytes(rig.data.begin(), rig.data.begin() + 4 * 512));
}

TEST_CASE("unwritten blocks are copied as unprotected zeros, uncorrectable ones not at all") {
  Rig rig({512, 8, separate, type_1});
  const CopyRange unwritten = rig.range(400, 8);
  CHECK(rig.copy(rig.request({&unwritten, 1}, false)) == 0);
  CHECK(rig.ns->transfer(rig.io(Opcode::read, destination)).value().unprotected == 8);
  Io io = rig.io(Opcode::write_uncorrectable, 400);
  io.memory = {};
  REQUIRE(rig.ns->transfer(io).has_value());
  CHECK(rig.copy(rig.request({&unwritten, 1}, true)) == 0x281);
}

TEST_SUITE_END();
