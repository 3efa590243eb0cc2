// Blocks and I/Os for the tests on devices.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "target.h"

namespace nvpi::test {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, std::uint32_t seed);

// Runs a test on every namespace of the table that fits.
template <typename Fits, typename Test>
void on_every_target(Fits fits, Test test) {
  for (const FormatRow& row : format_table()) {
    if (!fits(row.fields)) continue;
    CAPTURE(name_of(row));
    Target target(row);
    test(target);
  }
}

inline bool has_pi(const PiFormat::Fields& fields) {
  return fields.type != PiType::none;
}
inline bool any(const PiFormat::Fields&) {
  return true;
}

constexpr std::uint16_t test_app_tag = 0x1234;

Io write_of(std::uint64_t slba, Bytes& data, const PiFormat& format);
Io read_of(std::uint64_t slba, Bytes& data, const PiFormat& format);

// An I/O on blocks without memory: verify, write zeroes, ...
Io without_memory(Opcode opcode, std::uint64_t slba, std::uint64_t count);

// The status code, without DNR, of an I/O that the device refused.
template <typename T>
std::uint16_t code_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == Errc::status);
  return result.error().status.code();
}

// What the specification demands, and what QEMU does instead. Only a guest may depart.
template <typename T>
T departs(T specification, T qemu) {
  return in_guest() ? qemu : specification;
}

// One block with its metadata as the medium has it.
struct RawBlock {
  Bytes data, metadata;
};

Io raw(Opcode opcode, std::uint64_t lba, RawBlock& block);
RawBlock read_raw(Target& target, std::uint64_t lba);

// Damages the medium and waits until a read sees it.
void flip_and_wait(Target& target, Target::Area area, std::uint64_t lba, std::uint32_t offset);

}  // namespace nvpi::test
