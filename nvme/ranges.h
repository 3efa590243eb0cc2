// The range lists of Dataset Management and Copy. NVM Command Set Specification 1.0, sections 3.2.2 and 3.2.3;
// copy descriptor formats 2 and 3: 1.1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nvme/command.h"

namespace nvpi {

struct BlockRange {
  std::uint64_t slba = 0;
  std::uint64_t block_count = 0;
};

// One command says this much at most.
constexpr std::size_t ranges_per_command = 256;
constexpr std::size_t dsm_range_size = 16;  // bytes
constexpr std::uint64_t blocks_per_dsm_range = 0xFFFF'FFFF;

// A command and the bytes that it carries.
struct RangeCommand {
  Command command;
  std::vector<std::byte> payload;
};

// Tells the device that the blocks are no longer needed (attribute AD). At most ranges_per_command ranges
// of at most blocks_per_dsm_range blocks.
RangeCommand make_deallocate(std::uint32_t nsid, std::span<const BlockRange> ranges);
std::vector<BlockRange> parse_deallocate(const Command& command, const std::byte* payload);

// What a range of a copy takes, and what its PI is expected to be.
struct CopyRange {
  std::uint64_t slba = 0;
  std::uint32_t block_count = 0;  // 1 to 65536
  std::uint32_t snsid = 0;        // source namespace; formats 2 and 3
  PiTags expected;
};

// The specification says nothing of the byte order of the expected tags in a descriptor, so the general rule
// holds: little endian. Some hosts write, and some devices read, big endian.
enum class TagOrder : std::uint8_t { little_endian, big_endian };

struct CopyRequest {
  std::span<const CopyRange> ranges;
  std::uint64_t destination = 0;
  std::uint8_t descriptor_format = 0;  // 0 or 2 for a 16b guard, 1 or 3 for 32b and 64b
  // The same PRACT on both sides within a namespace: 0 passes the PI unchanged, 1 makes it anew.
  PiControl write;  // PRINFOW; the tags of the copy
  bool read_pract = false;
  PiChecks read_checks = PiChecks::none();  // PRINFOR, against each range's expected tags
  bool force_unit_access = false;
  TagOrder tag_order = TagOrder::little_endian;
};

// The descriptor format that goes with the guard of a namespace.
inline std::uint8_t copy_descriptor_format(const PiFormat& format, bool other_namespace = false) {
  const bool wide = format.has_pi() && format.guard() != GuardType::guard_16b;
  return static_cast<std::uint8_t>((wide ? 1 : 0) + (other_namespace ? 2 : 0));
}

RangeCommand make_copy(const PiFormat& format, std::uint32_t nsid, const CopyRequest& request);
// The reverse, for a controller; `ranges` receives what the request's span refers to.
CopyRequest parse_copy(const PiFormat& format, const Command& command, const std::byte* payload,
                       std::vector<CopyRange>& ranges);

}  // namespace nvpi
