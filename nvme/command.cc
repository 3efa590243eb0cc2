#include "nvme/command.h"

#include <cassert>

namespace nvpi {
namespace {

using bits = Command::cdw12_bits;

constexpr std::uint32_t flag(bool condition, std::uint32_t bit) { return condition ? bit : 0; }

constexpr std::uint32_t range_size_dsm = 16;
// Bytes of a source range by copy descriptor format (NVM Command Set Specification 1.0, figures 38, 39).
std::uint32_t copy_range_size(const Command& command) {
  return (command.cdw12 >> 8 & 1) == 0 ? 32 : 40;
}

Result<void> check_buffer(std::string_view field, const std::byte* memory, std::uint64_t length,
                          std::uint64_t wanted) {
  if (length != wanted || (memory != nullptr) != (wanted > 0)) {
    return fail({.code = Errc::wrong_length,
                 .field = field,
                 .value = memory == nullptr ? 0 : length,
                 .limit = wanted});
  }
  return {};
}

}  // namespace

Command make_io(Opcode opcode, std::uint32_t nsid, std::uint64_t slba,
                std::uint32_t block_count) noexcept {
  assert(block_count >= 1 && block_count <= 0x10000);
  return {
      .opcode = opcode,
      .nsid = nsid,
      .cdw10 = static_cast<std::uint32_t>(slba),
      .cdw11 = static_cast<std::uint32_t>(slba >> 32),
      .cdw12 = block_count - 1,
  };
}

void set_pi(Command& command, const PiFormat& format, const PiControl& control) noexcept {
  if (!format.has_pi()) return;
  const PiTags& tags = control.tags;
  command.cdw12 |= flag(control.pract, bits::pract) |
                   flag(control.checks.guard, bits::guard_check) |
                   flag(control.checks.app_tag, bits::app_tag_check) |
                   flag(control.checks.ref_tag, bits::ref_tag_check) |
                   flag(control.checks.storage_tag, bits::storage_tag_check);
  const TagSpace space = join_tags(format, tags.storage_tag, tags.initial_ref_tag);
  command.cdw14 = static_cast<std::uint32_t>(space);
  command.cdw3 = static_cast<std::uint32_t>(space >> 32);
  command.cdw2 = static_cast<std::uint16_t>(space >> 64);
  command.cdw15 = std::uint32_t{tags.app_tag_mask} << 16 | tags.app_tag;
}

PiControl pi_of(const Command& command, const PiFormat& format) noexcept {
  if (!format.has_pi()) return {};
  const TagSpace space = TagSpace{command.cdw2 & 0xFFFF} << 64 | TagSpace{command.cdw3} << 32 | command.cdw14;
  return {
      .pract = command.pract(),
      .checks = {.guard = (command.cdw12 & bits::guard_check) != 0,
                 .app_tag = (command.cdw12 & bits::app_tag_check) != 0,
                 .storage_tag = (command.cdw12 & bits::storage_tag_check) != 0,
                 .ref_tag = (command.cdw12 & bits::ref_tag_check) != 0},
      .tags = {.app_tag = static_cast<std::uint16_t>(command.cdw15),
               .app_tag_mask = static_cast<std::uint16_t>(command.cdw15 >> 16),
               .storage_tag = static_cast<std::uint64_t>(space >> format.ref_tag_size()) &
                              format.storage_tag_max(),
               .initial_ref_tag = static_cast<std::uint64_t>(space) & format.ref_tag_max()},
  };
}

PiFormat transferred_format(const PiFormat& format, bool pract) noexcept {
  if (!pract || !format.has_pi()) return format;
  return format.metadata_size() == format.pi_size() ? format.without_metadata() : format.without_pi();
}

TransferLength transfer_length(const PiFormat& format, std::uint64_t block_count, bool pract) noexcept {
  const bool hidden = pract && format.has_pi() && format.metadata_size() == format.pi_size();
  const std::uint64_t metadata = hidden ? 0 : format.metadata_size();
  return {.data = block_count * (format.data_size() + (format.extended() ? metadata : 0)),
          .metadata = format.extended() ? 0 : block_count * metadata};
}

Result<void> check_command(const Command& command, const PiFormat& format,
                           std::uint64_t namespace_blocks) noexcept {
  const auto check_both = [&](const TransferLength& length) {
    return check_buffer("data length", command.data, command.data_len, length.data).and_then([&] {
      return check_buffer("metadata length", command.metadata, command.metadata_len, length.metadata);
    });
  };
  const OpcodeTraits traits = traits_of(command.opcode);
  if (!traits.addresses_blocks && traits.direction != Direction::ranges) {
    if (traits.direction == Direction::none) return check_both({});
    return check_both({command.data_len, command.metadata_len});
  }
  if (traits.direction == Direction::ranges) {
    const bool dsm = command.opcode == Opcode::dataset_management;
    const std::uint64_t count = (dsm ? command.cdw10 & 0xFF : command.cdw12 & 0xFF) + 1u;  // NR is 0's based
    return check_both({count * (dsm ? range_size_dsm : copy_range_size(command)), 0});
  }
  const std::uint64_t count = command.block_count();
  if (command.slba() >= namespace_blocks || count > namespace_blocks - command.slba()) {
    return fail({.code = Errc::out_of_range,
                 .value = command.slba(),
                 .limit = namespace_blocks,
                 .block_count = static_cast<std::uint32_t>(count)});
  }
  if (traits.direction == Direction::none) return check_both({});
  return check_both(transfer_length(format, count, command.pract()));
}

}  // namespace nvpi
