// One command on blocks as the application states it, of any length, and what becomes of it: checked, split,
// turned into commands. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "nvme/command.h"
#include "nvme/error.h"
#include "pi/protect.h"

namespace nvpi {

enum class PiOwner : std::uint8_t {
  host,    // the driver makes and verifies the PI
  device,  // the device inserts and strips it (PRACT)
  caller,  // it is part of the caller's metadata and not looked at
};

enum class TransferMode : std::uint8_t {
  bounce,     // through a slot: what was guarded is what is transferred
  zero_copy,  // the device transfers from and to the caller's memory, which must not change meanwhile
  // Reads without a copy where the layout allows it, else and for writes as bounce, and like bounce for the
  // caller. What does not verify in the caller's memory is read again through a slot: if that verifies, it
  // was the caller who changed it. A queue that has seen this a few times bounces from then on.
  lazy,
};

struct Io {
  // read, write, compare, verify, write_zeroes, write_uncorrectable or zone_append
  Opcode opcode = Opcode::read;
  std::uint64_t slba = 0;  // zone append: of the zone
  std::uint64_t block_count = 0;
  // Only of opcodes that transfer blocks. Borrowed until the I/O completes. Bounce: any pieces, data without metadata between the blocks.
  // Zero-copy: one piece in the device's layout (with the extended layout, metadata behind each block),
  // dword aligned; metadata may be left out, the driver then has its own.
  UserBlocks memory;
  TransferMode mode = TransferMode::bounce;

  PiOwner pi = PiOwner::host;
  PiChecks checks;         // by the host, on reads
  PiChecks device_checks;  // by the device
  std::uint16_t app_tag = 0;
  std::uint16_t app_tag_mask = 0xFFFF;
  std::uint64_t storage_tag = 0;
  // Of the first block. Left out: the low bits of its LBA, which type 1 demands anyway; 0 for type 3.
  std::optional<std::uint64_t> ref_tag;
  // A written application tag of FFFFh switches all checks of its block off; it is refused without this.
  bool allow_unprotected = false;

  bool force_unit_access = false;
  bool limited_retry = false;
  bool deallocate = false;            // write zeroes: DEAC
  std::uint8_t directive_type = 0;    // DTYPE of a write: 1 streams, 2 data placement (FDP)
  std::uint16_t directive_value = 0;  // DSPEC
  std::uint32_t timeout_ms = 0;  // of each command; 0: the kernel's

  MismatchSink on_mismatch;  // every block that fails, in no order between commands
  std::uint64_t cookie = 0;  // handed back with the completion
};

// The part of a namespace that I/O depends on.
struct Geometry {
  PiFormat format;
  std::uint32_t nsid = 0;
  std::uint64_t block_count = 0;
  std::uint64_t max_transfer_size = 0;  // MDTS in bytes, 0 for none
  bool mdts_excludes_metadata = false;  // CTRATT.MEM
  std::uint64_t transfer_limit = 0;     // of the way to the device, bytes of data, 0 for none
};

// Refuses, before anything is sent, what cannot be right: nothing to transfer, a range outside the
// namespace, memory of another size, tags that are too large or contradict the address. check_request is
// the part that needs no memory yet.
Result<void> check_request(const Io& io, const Geometry& geometry) noexcept;
Result<void> check_io(const Io& io, const Geometry& geometry) noexcept;

// The most blocks that one command may address. Without a transfer only NLB limits them.
std::uint64_t max_blocks_per_command(const Geometry& geometry, PiOwner pi,
                                     Opcode opcode = Opcode::read) noexcept;

// A part of an I/O that passed check_io: `count` blocks from block `first`, with the memory and the
// reference tag that belong to them.
Io part_of(const Io& io, const Geometry& geometry, std::uint64_t first, std::uint64_t count) noexcept;

// The layout in which the device transfers the I/O. There are three for a namespace, by who owns the PI; a
// queue makes them once.
class TransferredFormats {
 public:
  explicit TransferredFormats(const PiFormat& format);
  const PiFormat& of(const Io& io) const;

 private:
  PiFormat whole_, by_device_, by_caller_;
};
PiTags tags_of(const Io& io, const PiFormat& format) noexcept;
// The checks that make sense for this format: no reference tag for type 3, no storage tag without one.
PiChecks applicable(const PiChecks& checks, const PiFormat& format) noexcept;
// The command of an I/O that fits into one, without its memory.
Command command_of(const Io& io, const Geometry& geometry) noexcept;

}  // namespace nvpi
