// Why a block and its protection information do not fit each other.
// NVM Command Set Specification 1.0, section 5.2.1 (what the tuple is made from).
//
// Pure functions: no I/O, no allocation, safe from any thread. They are for the block that has failed, not
// for the path of I/O: one takes about as long as a few hundred guards.
//
// A cause is evidence, not proof. Each comes with the chance that it fits a block that was damaged at
// random: with a 16b guard one in two such blocks of 4 KiB looks as if one bit had been flipped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pi/protect.h"

namespace nvpi {

enum class CauseKind : std::uint8_t {
  // The guard does not fit the bytes that it covers.
  flipped_bits,            // one bit, or a burst of `bits` bits, in the data or the metadata before the PI
  flipped_tuple_bit,       // one bit of the tuple itself, `offset` and `bit` in it; also of its tags
  zeroed_data,             // all data is zero
  erased_data,             // all data is ones
  zeroed_tuple,            // no PI was ever written
  swapped_guard,           // in the other byte order
  other_position,          // the PI is at the other end of the metadata
  data_only_guard,         // the metadata before the PI was left out
  whole_metadata_guard,    // the metadata behind the PI was taken in
  other_seed,              // the guard starts from the opposite of the right value
  not_inverted,            // 32b, 64b: the final inversion was left out, in either start
  other_polynomial,        // that of the other well-known CRC of this width
  // The guard fits: the block is whole, but not the one that was expected.
  other_lba,               // it belongs to `lba`, if its reference tag was made from its address
  other_write,             // its other tags are those of another, maybe older, write
};

struct Cause {
  CauseKind kind = CauseKind::flipped_bits;
  double chance = 0;         // that it fits damage at random; at most 1
  std::uint32_t offset = 0;  // flipped bits: the first byte, counted over the data, then the metadata
  std::uint8_t bit = 0;      // ... and the first bit in it as the guard sees them; 0 is the lowest
  std::uint8_t bits = 0;     // ... and from the first to the last one
  std::uint64_t lba = 0;     // other_lba

  bool operator==(const Cause&) const = default;
};

// The causes that fit, the least likely to do so by chance first. None: unknown.
class Diagnosis {
 public:
  std::span<const Cause> causes() const { return {causes_.data(), count_}; }
  bool unknown() const { return count_ == 0; }
  // The chance that some cause is named for damage at random: the sum over all that were tried.
  double chance() const { return chance_; }

 private:
  friend class Diagnoser;

  // Each fits at most once.
  static constexpr std::size_t kinds = static_cast<std::size_t>(CauseKind::other_write) + 1;
  std::array<Cause, kinds> causes_{};
  std::size_t count_ = 0;
  double chance_ = 0;
};

// `data` and `metadata` (all of it, with the PI) are those of one block in a format with PI. `expected` is
// what it was checked against, with the block's own address and reference tag.
Diagnosis diagnose(const PiFormat& format, const Expectation& expected, std::span<const std::byte> data,
                   std::span<const std::byte> metadata) noexcept;
inline Diagnosis diagnose(const PiFormat& format, const FailedBlock& block) noexcept {
  return diagnose(format, block.expected, block.data, block.metadata);
}

}  // namespace nvpi
