// One read or write of blocks as the application states it, and what becomes of it: checked, split, turned
// into a command. Pure functions.
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
};

struct Io {
  Opcode opcode = Opcode::read;  // read or write
  std::uint64_t slba = 0;
  std::uint64_t block_count = 0;
  // Borrowed until the I/O completes. Bounce: any pieces, data without metadata between the blocks.
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

// The most blocks that one command may transfer.
std::uint64_t max_blocks_per_command(const Geometry& geometry, PiOwner pi) noexcept;

// A part of an I/O that passed check_io: `count` blocks from block `first`, with the memory and the
// reference tag that belong to them.
Io part_of(const Io& io, const Geometry& geometry, std::uint64_t first, std::uint64_t count) noexcept;

// The layout in which the device transfers the I/O.
PiFormat transferred_format(const Io& io, const PiFormat& format) noexcept;
PiTags tags_of(const Io& io, const PiFormat& format) noexcept;
// The checks that make sense for this format: no reference tag for type 3, no storage tag without one.
PiChecks applicable(const PiChecks& checks, const PiFormat& format) noexcept;
// The command of an I/O that fits into one, without its memory.
Command command_of(const Io& io, const Geometry& geometry) noexcept;

}  // namespace nvpi
