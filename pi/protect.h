// Making and checking protection information over runs of blocks.
// NVM Command Set Specification 1.0, section 5.2 (which bytes the guard covers: 5.2.1.4; the
// checks: 5.2.2).
//
// Pure functions over memory: no I/O, no allocation, safe from any thread on different memory. Two
// kinds of memory take part and are never mixed up:
//   Blocks      what the device transfers, in the namespace's layout; ours, stable (a bounce slot)
//   UserMemory  the application's, which may change at any moment: each byte is loaded once
//
// Lengths are preconditions and are asserted: the layer above checks what comes from outside.
//
// In the words that other libraries use:
//   insert      protect()
//   strip       verify_and_copy() with PiChecks::none(), or with checks: verify, then strip
//   regenerate  generate()
//   remap       remap(), in remap.h: other tags, the same guard
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "pi/format.h"
#include "pi/tuple.h"
#include "pi/user_memory.h"

namespace nvpi {

// A run of blocks as the device transfers it. Extended layout: data holds count * (data + metadata)
// bytes and metadata is null. Separate layout: count * data and count * metadata bytes.
struct Blocks {
  std::byte* data = nullptr;
  std::byte* metadata = nullptr;
  std::uint32_t count = 0;
};

// The application's view of the same blocks: count * data_size bytes, and count * metadata_size
// bytes of metadata or none (then the bytes beside the PI are zero on the way out and dropped on
// the way in).
struct UserBlocks {
  UserMemory data;
  UserMemory metadata;
};

// What goes into tuples and what is expected of them: LBAT, LBATM, LBST, ILBRT of a command.
struct PiTags {
  std::uint16_t app_tag = 0;
  std::uint16_t app_tag_mask = 0xFFFF;  // a bit of 0 is not compared
  std::uint64_t storage_tag = 0;
  std::uint64_t initial_ref_tag = 0;  // of the first block
};

// Type 1 ties the reference tag to the address: the low bits of the first LBA.
inline std::uint64_t ref_tag_of_lba(const PiFormat& format, std::uint64_t lba) {
  return lba & format.ref_tag_max();
}

struct PiChecks {  // PRCHK and STC of a command
  bool guard = true;
  bool app_tag = true;
  bool storage_tag = true;
  bool ref_tag = true;

  static constexpr PiChecks none() { return {false, false, false, false}; }
  bool operator==(const PiChecks&) const = default;
};

enum class PiTag : std::uint8_t { guard, app_tag, storage_tag, ref_tag };

// One block whose protection information does not fit: the first tag that differs, in the order
// guard, application, storage, reference tag.
struct PiMismatch {
  std::uint64_t lba = 0;
  std::uint32_t block_index = 0;  // in the run that was checked
  PiTag tag = PiTag::guard;
  std::uint64_t stored = 0;    // in the tuple
  std::uint64_t computed = 0;  // from the data, or expected by the command
  PiTuple tuple;               // the whole tuple as stored
};

// What a check is about: the checks, the expected tags, and the address that mismatches are
// reported with.
struct Expectation {
  PiTags tags;
  PiChecks checks;
  std::uint64_t first_lba = 0;
};

// A block that has failed, as the device transferred it, and what it was checked against: what it
// takes to say why (diagnose.h). The bytes are only borrowed for the call.
struct FailedBlock {
  std::span<const std::byte> data;
  std::span<const std::byte> metadata;
  Expectation expected;  // with the block's own address and reference tag
};

// Called for every mismatch, in order of blocks, with the mismatch and, if the callable takes it,
// the block. Returns whether to go on. Refers to the callable it is made from, which must outlive
// the call it is passed to.
class MismatchSink {
 public:
  MismatchSink() = default;
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, MismatchSink>)
  MismatchSink(F&& function)  // NOLINT(google-explicit-constructor): a lambda is passed in place
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, const PiMismatch& mismatch,
                 [[maybe_unused]] const FailedBlock& block) -> bool {
          auto& callable = *static_cast<std::remove_reference_t<F>*>(object);
          if constexpr (std::invocable<F, const PiMismatch&, const FailedBlock&>) {
            return callable(mismatch, block);
          } else {
            return callable(mismatch);
          }
        }) {}

  bool operator()(const PiMismatch& mismatch, const FailedBlock& block) const {
    return call_ == nullptr || call_(object_, mismatch, block);
  }

 private:
  void* object_ = nullptr;
  bool (*call_)(void*, const PiMismatch&, const FailedBlock&) = nullptr;
};

struct VerifyCounts {
  std::uint64_t verified = 0;     // every check that was asked for passed
  std::uint64_t unprotected = 0;  // escape tags: not checked, never counted as verified
  std::uint64_t mismatched = 0;

  VerifyCounts& operator+=(const VerifyCounts& other) {
    verified += other.verified;
    unprotected += other.unprotected;
    mismatched += other.mismatched;
    return *this;
  }
};

// Copies user blocks into device blocks and makes the tuples there. The guard is that of the bytes
// in `target`, also while another thread rewrites `source`. Without PI in the format it only
// copies.
void protect(const PiFormat& format, const PiTags& tags, const Blocks& target,
             const UserBlocks& source) noexcept;

// Makes the tuples over blocks where they lie (zero-copy, regeneration).
void generate(const PiFormat& format, const PiTags& tags, const Blocks& blocks) noexcept;

// Checks blocks where they lie. Without PI in the format every block counts as unprotected.
VerifyCounts verify(const PiFormat& format, const Expectation& expected, const Blocks& blocks,
                    MismatchSink on_mismatch = {}) noexcept;

// Checks device blocks and copies them out to the user. A block that fails reads as zeros there:
// wrong data is never left in the user's memory. If the sink stops the check, the rest is not
// copied.
VerifyCounts verify_and_copy(const PiFormat& format, const Expectation& expected,
                             const Blocks& source, const UserBlocks& target,
                             MismatchSink on_mismatch = {}) noexcept;

}  // namespace nvpi
