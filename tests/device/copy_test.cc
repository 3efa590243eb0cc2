// Copies on devices: what becomes of the PI, and the byte order of the tags in a descriptor.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "blocks.h"

namespace nvpi::test {
namespace {

constexpr std::uint64_t source = 600, destination = 700;
constexpr std::uint32_t blocks = 8;

PiTags tags_at(const PiFormat& format, std::uint64_t lba) {
  const bool counts = format.type() != PiType::type_3;
  return {.app_tag = test_app_tag, .initial_ref_tag = counts ? ref_tag_of_lba(format, lba) : 0};
}

CopyRange range_of(const PiFormat& format, std::uint64_t slba, std::uint32_t count = blocks) {
  return {.slba = slba, .block_count = count, .expected = tags_at(format, slba)};
}

CopyRequest request_of(const PiFormat& format, const CopyRange& range, bool pract) {
  return {
      .ranges = {&range, 1},
      .destination = destination,
      .descriptor_format = copy_descriptor_format(format),
      .write = {.pract = pract, .checks = PiChecks::none(), .tags = tags_at(format, destination)},
      .read_pract = pract};
}

Bytes written(Target& target, std::uint64_t slba, std::uint32_t seed) {
  Bytes data = random_bytes(std::size_t{blocks} * target.format().data_size(), seed);
  REQUIRE(target.ns().transfer(write_of(slba, data, target.format())));
  return data;
}

TEST_CASE("a copy without PRACT keeps the PI: type 1 blocks fail their reference tag elsewhere") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    const Bytes data = written(target, source, 41);
    const CopyRange range = range_of(format, source);
    REQUIRE(target.ns().copy(request_of(format, range, false)));
    CHECK(read_raw(target, destination + 3).metadata == read_raw(target, source + 3).metadata);

    Bytes copy(data.size());
    Io io = read_of(destination, copy, format);
    if (format.type() == PiType::type_1) {
      CHECK(code_of(target.ns().transfer(io)) == 0x284);
      io.checks.ref_tag = io.device_checks.ref_tag = false;
    } else if (format.type() == PiType::type_2) {
      io.ref_tag = source;
    }
    const auto counts = target.ns().transfer(io);
    REQUIRE(counts);
    CHECK(counts->verified == (format.has_pi() ? blocks : 0));
    CHECK(copy == data);
  });
}

TEST_CASE("a copy with PRACT makes the PI anew for the new place") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    const Bytes data = written(target, source, 42);
    const CopyRange range = range_of(format, source);
    REQUIRE(target.ns().copy(request_of(format, range, true)));
    Bytes copy(data.size());
    const auto counts = target.ns().transfer(read_of(destination, copy, format));
    REQUIRE(counts);
    CHECK(counts->verified == blocks);
    CHECK(copy == data);
  });
}

TEST_CASE("a copy with PRACT on one side only is Invalid Field") {
  on_every_target(has_pi, [](Target& target) {
    const CopyRange range = range_of(target.format(), source);
    CopyRequest request = request_of(target.format(), range, true);
    request.read_pract = false;
    CHECK(code_of(target.ns().copy(request)) == 0x002);
  });
}

// QEMU: 10Ah, Invalid Format.
TEST_CASE("a descriptor format for another guard is refused, by QEMU with another status") {
  on_every_target(has_pi, [](Target& target) {
    const CopyRange range = range_of(target.format(), source);
    CopyRequest request = request_of(target.format(), range, false);
    request.descriptor_format ^= 1;
    CHECK(code_of(target.ns().copy(request)) == departs(0x00B, 0x10A));
  });
}

// QEMU 7.2: 006h, Internal Error, for the range outside of the namespace.
TEST_CASE("a copy gathers ranges, and names the first that it did not copy") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    Bytes data = written(target, source, 43);
    const std::uint64_t end = target.ns().block_count();
    const CopyRange ranges[] = {range_of(format, source + 4, 4), range_of(format, source, 4),
                                range_of(format, end - 1, 2)};
    CopyRequest request = request_of(format, ranges[0], format.has_pi());
    request.ranges = std::span(ranges).first(2);
    REQUIRE(target.ns().copy(request));
    Bytes copy(data.size());
    REQUIRE(target.ns().transfer(read_of(destination, copy, format)));
    const auto middle = static_cast<std::ptrdiff_t>(data.size() / 2);
    std::rotate(data.begin(), data.begin() + middle, data.end());
    CHECK(copy == data);

    request.ranges = ranges;
    const RangeCommand made = make_copy(format, target.ns().geometry().nsid, request);
    IoDone done;
    Queue& queue = target.ns().queue();
    REQUIRE(queue.submit(made.command, {UserMemory::read_only(made.payload), {}}, 0));
    REQUIRE(queue.reap([&](const IoDone& io) { done = io; }, std::chrono::seconds(60)));
    REQUIRE_FALSE(done.outcome);
    const bool old_qemu = qemu_version().starts_with("7.");
    CHECK(done.outcome.error().status.code() == (old_qemu ? 0x006 : 0x080));
    CHECK((done.dwords & 0xFFFFFFFF) == 2);
  });
}

// The specification does not say in which order the bytes of ELBT, ELBAT and ELBATM lie. QEMU takes
// little endian in format 0; in format 1 ELBT is big endian and the other two are little endian.
TEST_CASE("R22: which byte order of the tags in a descriptor the device takes") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    written(target, source, 44);
    struct Check {
      std::string name;
      PiChecks checks;
      bool tag_is_big_endian_in_qemu;
    };
    const bool wide = copy_descriptor_format(format) == 1;
    const Check checks[] = {{"reference tag", {false, false, false, true}, wide},
                            {"application tag", {false, true, false, false}, false}};
    for (const Check& check : checks) {
      if (check.checks.ref_tag && format.type() == PiType::type_3) continue;  // not compared
      const CopyRange range = range_of(format, source);
      CopyRequest request = request_of(format, range, false);
      request.read_checks = check.checks;
      for (const TagOrder order : {TagOrder::little_endian, TagOrder::big_endian}) {
        CAPTURE(check.name);
        CAPTURE(order == TagOrder::big_endian);
        request.tag_order = order;
        const bool big = order == TagOrder::big_endian;
        const bool taken = big == departs(false, check.tag_is_big_endian_in_qemu);
        const auto result = target.ns().copy(request);
        CHECK(result.has_value() == taken);
      }
    }
  });
}

}  // namespace
}  // namespace nvpi::test
