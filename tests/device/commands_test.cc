// Compare, verify, write zeroes, deallocate and flush on devices. Where QEMU does something else
// than the specification says, `departs` has both, and the test's comment says what.
#include <doctest/doctest.h>

#include <algorithm>

#include "blocks.h"

namespace nvpi::test {
namespace {

bool all_are(const Bytes& bytes, std::uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

bool is_pi_first(const PiFormat& format) {
  return format.position() == PiPosition::first;
}

Bytes pi_of(const PiFormat& format, const RawBlock& block) {
  const auto begin = block.metadata.begin() + format.pi_offset();
  return {begin, begin + format.pi_size()};
}

// Blocks of the namespace with random content, written with all checks on.
Bytes written(Target& target, std::uint64_t slba, std::size_t count, std::uint32_t seed) {
  Bytes data = random_bytes(count * target.format().data_size(), seed);
  REQUIRE(target.ns().transfer(write_of(slba, data, target.format())));
  return data;
}

TEST_CASE("a compare of what is there succeeds, one byte else is 285h and changes nothing") {
  on_every_target(any, [](Target& target) {
    Bytes data = written(target, 400, 8, 21);
    const RawBlock before = read_raw(target, 405);
    for (const PiOwner owner : {PiOwner::host, PiOwner::device}) {
      Io io = write_of(400, data, target.format());
      io.opcode = Opcode::compare;
      io.pi = owner;
      CHECK(target.ns().transfer(io));
      data[5 * target.format().data_size() + 3] ^= std::byte{1};
      CHECK(code_of(target.ns().transfer(io)) == 0x285);
      data[5 * target.format().data_size() + 3] ^= std::byte{1};
    }
    const RawBlock after = read_raw(target, 405);
    CHECK(after.data == before.data);
    CHECK(after.metadata == before.metadata);
  });
}

// QEMU compares the PI, and the metadata beside it only if the PI is first; the specification has
// it the other way round. It does not check the PI of the host's blocks.
TEST_CASE("a compare leaves the PI out and takes the other metadata in - QEMU the reverse") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    written(target, 410, 1, 22);
    const unsigned app_tag_at = format.pi_offset() + guard_size(format.guard());

    RawBlock other_pi = read_raw(target, 410);
    other_pi.metadata[app_tag_at] ^= std::byte{1};
    const auto pi_compared = target.ns().transfer(raw(Opcode::compare, 410, other_pi));
    CHECK((pi_compared ? 0 : code_of(pi_compared)) == departs(0, 0x285));

    if (format.metadata_size() > format.pi_size()) {
      RawBlock other_metadata = read_raw(target, 410);
      other_metadata.metadata[is_pi_first(format) ? format.pi_size() : 0] ^= std::byte{1};
      const auto compared = target.ns().transfer(raw(Opcode::compare, 410, other_metadata));
      CHECK((compared ? 0 : code_of(compared)) == departs(0x285, is_pi_first(format) ? 0x285 : 0));
    }

    RawBlock bad_guard = read_raw(target, 410);
    bad_guard.metadata[format.pi_offset()] ^= std::byte{1};
    Io io = raw(Opcode::compare, 410, bad_guard);
    io.device_checks = {true, false, false, false};
    CHECK(code_of(target.ns().transfer(io)) == departs(0x282, 0x285));
  });
}

TEST_CASE("a verify passes what was written and names the tag that differs, without any memory") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    written(target, 420, 8, 23);
    Io io = without_memory(Opcode::verify, 420, 8);
    CHECK(target.ns().transfer(io));
    if (!format.has_pi()) return;
    io.app_tag ^= 1;
    CHECK(code_of(target.ns().transfer(io)) == 0x283);
    io.app_tag_mask = 0xFFFE;
    CHECK(target.ns().transfer(io));
    if (format.type() == PiType::type_2) {
      io.ref_tag = 421;
      CHECK(code_of(target.ns().transfer(io)) == 0x284);
      io.ref_tag.reset();
    }
    flip_and_wait(target, Target::Area::data, 423, 9);
    CHECK(code_of(target.ns().transfer(io)) == 0x282);
    io.device_checks.guard = false;
    CHECK(target.ns().transfer(io));
  });
}

// QEMU: 181h.
TEST_CASE("a verify or a compare with PRACT is refused, by QEMU with another status") {
  on_every_target(has_pi, [](Target& target) {
    written(target, 420, 1, 24);
    Command command = make_io(Opcode::verify, target.ns().geometry().nsid, 420, 1);
    set_pi(command, target.format(), {.pract = true, .checks = PiChecks::none(), .tags = {}});
    CHECK(target.send(command).status().code() == departs(0x002, 0x181));
  });
}

// QEMU: 181h for a PRACT write with a reference check and another tag than the address.
TEST_CASE("a write with PRACT ignores its checks - QEMU does not for the reference tag of type 1") {
  const auto fits = [](const PiFormat::Fields& f) {
    return f.type == PiType::type_1 && f.metadata_size == 8;
  };
  on_every_target(fits, [](Target& target) {
    Bytes data = random_bytes(target.format().data_size(), 25);
    Command command = make_io(Opcode::write, target.ns().geometry().nsid, 430, 1);
    set_pi(
        command, target.format(),
        {.pract = true, .checks = {false, false, false, true}, .tags = {.initial_ref_tag = 431}});
    command.data = data.data();
    command.data_len = static_cast<std::uint32_t>(data.size());
    CHECK(target.send(command).status().code() == departs(0, 0x181));
  });
}

// QEMU: without DNR.
TEST_CASE("a reference check on type 3 is 181h, on QEMU without DNR") {
  const auto fits = [](const PiFormat::Fields& f) { return f.type == PiType::type_3; };
  on_every_target(fits, [](Target& target) {
    Command command = make_io(Opcode::verify, target.ns().geometry().nsid, 440, 1);
    set_pi(command, target.format(), {.checks = {false, false, false, true}, .tags = {}});
    CHECK(target.send(command).status().raw() == departs(0x4181, 0x181));
  });
}

// QEMU builds the reference tag from both dwords for every guard, and finds that it is not the
// address.
TEST_CASE("bits of CDW3 that a 16b guard does not use are ignored - QEMU takes them for the tag") {
  const auto fits = [](const PiFormat::Fields& f) {
    return f.type == PiType::type_1 && f.guard == GuardType::guard_16b;
  };
  on_every_target(fits, [](Target& target) {
    written(target, 440, 1, 26);
    Command command = make_io(Opcode::verify, target.ns().geometry().nsid, 440, 1);
    set_pi(command, target.format(),
           {.checks = {false, false, false, true}, .tags = {.initial_ref_tag = 440}});
    command.cdw3 = 1;
    CHECK(target.send(command).status().code() == departs(0, 0x181));
  });
}

// QEMU: a 64b guard is the constant for 4096 + 16, wrong if there is metadata before the PI.
TEST_CASE("zeroes have PI that verifies - on QEMU not with a 64b guard over metadata") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    written(target, 450, 9, 27);
    REQUIRE(target.ns().transfer(without_memory(Opcode::write_zeroes, 450, 8)));
    Bytes copy(std::size_t{9} * format.data_size(), std::byte{0xEE});
    Io io = read_of(450, copy, format);
    io.device_checks = PiChecks::none();
    const auto counts = target.ns().transfer(io);
    const bool wide = format.guard() == GuardType::guard_64b && format.guarded_metadata_size() > 0;
    if (in_guest() && format.has_pi() && wide) {
      REQUIRE_FALSE(counts);
      CHECK(counts.error().mismatch_count == 8);
      CHECK(counts.error().mismatch.tag == PiTag::guard);
      CHECK(counts.error().mismatch.stored == 0x6482D367EB22B64E);
      CHECK(counts.error().mismatch.computed == 0x469A00D4FC907450);
      return;
    }
    REQUIRE(counts);
    CHECK(counts->verified == (format.has_pi() ? 9 : 0));
    copy.resize(std::size_t{8} * format.data_size());
    CHECK(all_are(copy, 0));
  });
}

// QEMU writes no metadata without PRACT: the old PI stays, or reads as all ones where the image has
// a hole now.
TEST_CASE("zeroes without PRACT have metadata of zeros - on QEMU the old PI or an escape") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    written(target, 460, 2, 28);
    const RawBlock old = read_raw(target, 460);
    Io io = without_memory(Opcode::write_zeroes, 460, 2);
    io.pi = PiOwner::caller;
    REQUIRE(target.ns().transfer(io));
    const RawBlock block = read_raw(target, 460);
    CHECK(all_are(block.data, 0));
    const Bytes pi = pi_of(format, block);
    const bool kept = pi == pi_of(format, old) || all_are(pi, 0xFF);
    CHECK((in_guest() ? kept : all_are(block.metadata, 0)));
  });
}

// QEMU: they stay as they were, with their PI.
TEST_CASE("deallocated blocks read without an error, and as unprotected - on QEMU as they were") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    const Bytes data = written(target, 470, 24, 29);
    const BlockRange ranges[] = {{470, 8}, {486, 8}};
    REQUIRE(target.ns().deallocate(ranges));
    Bytes copy(data.size());
    const auto counts = target.ns().transfer(read_of(470, copy, format));
    REQUIRE(counts);
    CHECK(counts->unprotected == (format.has_pi() ? departs(16, 0) : 24));
    const auto middle = static_cast<std::ptrdiff_t>(8 * format.data_size());
    CHECK(std::equal(copy.begin() + middle, copy.begin() + 2 * middle, data.begin() + middle));
  });
}

// QEMU does not know the command.
TEST_CASE("blocks made uncorrectable are 281h until they are written again") {
  on_every_target(any, [](Target& target) {
    Bytes data = written(target, 500, 2, 30);
    const auto made = target.ns().transfer(without_memory(Opcode::write_uncorrectable, 500, 2));
    if (in_guest()) {
      CHECK(code_of(made) == 0x001);
      return;
    }
    REQUIRE(made);
    CHECK(code_of(target.ns().transfer(read_of(500, data, target.format()))) == 0x281);
    written(target, 500, 2, 31);
    CHECK(target.ns().transfer(read_of(500, data, target.format())));
  });
}

TEST_CASE("a flush and writes that force unit access succeed") {
  on_every_target(any, [](Target& target) {
    Bytes data = random_bytes(target.format().data_size(), 32);
    Io io = write_of(510, data, target.format());
    io.force_unit_access = true;
    CHECK(target.ns().transfer(io));
    CHECK(target.ns().flush());
  });
}

}  // namespace
}  // namespace nvpi::test
