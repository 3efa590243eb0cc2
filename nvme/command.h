// NVMe commands of the NVM command set, ready for a transport. NVM Command Set Specification 1.0,
// sections 3 and 5.2.
#pragma once

#include <cstdint>

#include "nvme/error.h"
#include "pi/protect.h"

namespace nvpi {

enum class Opcode : std::uint8_t {
  flush = 0x00,
  write = 0x01,
  read = 0x02,
  write_uncorrectable = 0x04,
  compare = 0x05,
  write_zeroes = 0x08,
  dataset_management = 0x09,
  verify = 0x0C,
  copy = 0x19,
  zone_append = 0x7D,  // Zoned Namespace Command Set Specification 1.1
};

// What a command does with memory. `ranges`: the data is a list of ranges, not blocks.
enum class Direction : std::uint8_t { none, to_device, from_device, ranges };

struct OpcodeTraits {
  Direction direction = Direction::none;
  bool addresses_blocks = false;  // SLBA in CDW10 and CDW11, NLB in CDW12
  bool has_pi = false;            // PI bits in CDW12, tags
};
// Of an opcode that is not in the list above, only the direction in its bits 1:0 is known.
constexpr OpcodeTraits traits_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::flush: return {};
    case Opcode::write: return {Direction::to_device, true, true};
    case Opcode::read: return {Direction::from_device, true, true};
    case Opcode::write_uncorrectable: return {Direction::none, true, false};
    case Opcode::compare: return {Direction::to_device, true, true};
    case Opcode::write_zeroes: return {Direction::none, true, true};
    case Opcode::dataset_management: return {Direction::ranges, false, false};
    case Opcode::verify: return {Direction::none, true, true};
    case Opcode::copy: return {Direction::ranges, false, true};
    case Opcode::zone_append: return {Direction::to_device, true, true};
  }
  constexpr Direction by_bits[] = {Direction::none, Direction::to_device, Direction::from_device,
                                   Direction::none};
  return {by_bits[static_cast<unsigned>(opcode) & 3]};
}
constexpr bool transfers_blocks(const OpcodeTraits& traits) {
  return traits.addresses_blocks && traits.direction != Direction::none;
}

// A command and its memory. The memory is borrowed from the moment it is submitted to its completion.
struct Command {
  Opcode opcode = Opcode::flush;
  std::uint32_t nsid = 0;
  std::uint32_t cdw2 = 0, cdw3 = 0;
  std::uint32_t cdw10 = 0, cdw11 = 0, cdw12 = 0, cdw13 = 0, cdw14 = 0, cdw15 = 0;
  std::byte* data = nullptr;
  std::byte* metadata = nullptr;
  std::uint32_t data_len = 0;
  std::uint32_t metadata_len = 0;
  std::uint32_t timeout_ms = 0;    // 0: the kernel's
  std::int32_t fixed_buffer = -1;  // index of the registered buffer that holds `data`, or none

  std::uint64_t slba() const { return std::uint64_t{cdw11} << 32 | cdw10; }
  std::uint32_t block_count() const { return (cdw12 & 0xFFFF) + 1; }  // NLB is 0's based
  bool pract() const { return (cdw12 & cdw12_bits::pract) != 0; }

  struct cdw12_bits {
    static constexpr std::uint32_t storage_tag_check = 1u << 24;
    static constexpr std::uint32_t deallocate = 1u << 25;  // DEAC of Write Zeroes
    static constexpr std::uint32_t pi_remap = 1u << 25;    // PIREMAP of Zone Append
    static constexpr std::uint32_t ref_tag_check = 1u << 26;
    static constexpr std::uint32_t app_tag_check = 1u << 27;
    static constexpr std::uint32_t guard_check = 1u << 28;
    static constexpr std::uint32_t pract = 1u << 29;
    static constexpr std::uint32_t force_unit_access = 1u << 30;
    static constexpr std::uint32_t limited_retry = 1u << 31;
  };
};

// The user_data that went in with a command, and how the command ended.
struct Completion {
  std::uint64_t user_data = 0;
  std::int32_t result = 0;   // below 0: -errno, the command did not complete; else the NVMe status
  std::uint64_t dwords = 0;  // CQE DW0 and DW1

  Status status() const { return Status(static_cast<std::uint16_t>(result)); }
};

// How PI takes part in a read or write.
struct PiControl {
  bool pract = false;  // the device inserts and strips
  PiChecks checks = PiChecks::none();
  PiTags tags;
};

// Sets the PI bits of CDW12 and packs the tags into CDW2, CDW3, CDW14 and CDW15.
void set_pi(Command& command, const PiFormat& format, const PiControl& control) noexcept;
PiControl pi_of(const Command& command, const PiFormat& format) noexcept;  // the reverse

// A command that addresses blocks, without memory and PI.
Command make_io(Opcode opcode, std::uint32_t nsid, std::uint64_t slba, std::uint32_t block_count) noexcept;

// The layout in which the device transfers the blocks of a command: with PRACT set, PI that fills the
// metadata is not transferred, and other PI is the device's business (section 5.2.2.1).
PiFormat transferred_format(const PiFormat& format, bool pract) noexcept;

struct TransferLength {
  std::uint64_t data = 0;
  std::uint64_t metadata = 0;
};
TransferLength transfer_length(const PiFormat& format, std::uint64_t block_count, bool pract) noexcept;

// The only guard between a wrong length and somebody else's memory: the kernel compares neither length
// with the block count, and a device without SGLs then writes past the buffer. A command that moves
// separate metadata but has no metadata buffer is even answered with success, while the device uses
// physical address 0. Every command passes here before it is submitted. Of opcodes that the driver does
// not know it only checks that there is memory exactly where there is a length.
Result<void> check_command(const Command& command, const PiFormat& format,
                           std::uint64_t namespace_blocks) noexcept;

}  // namespace nvpi
