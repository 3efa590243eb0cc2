// What the emulated namespace does with each command. NVM Command Set Specification 1.0, sections 3.2
// (commands) and 5.2.2 (protection information).
#include <algorithm>

#include "nvme/emulated_namespace.h"

namespace nvpi {
namespace {

constexpr Status command_size_limit_exceeded{0x183};

}  // namespace

EmulatedNamespace::Outcome EmulatedNamespace::execute(const Command& command) {
  if (command.nsid != nsid()) return {status::invalid_namespace_or_format.with_dnr()};
  const PiControl pi = pi_of(command, medium_->format());
  if (traits_of(command.opcode).addresses_blocks) {
    if (const Status wrong = check_lengths(command); !wrong.ok()) return {wrong};
    if (const Status wrong = check_pi_fields(command, pi); !wrong.ok()) return {wrong};
  }
  if (traits_of(command.opcode).direction == Direction::ranges &&
      !check_command(command, medium_->format(), medium_->block_count())) {
    return {status::data_sgl_length_invalid.with_dnr()};
  }
  if (const Status refused = check_writable(command); !refused.ok()) return {refused};
  switch (command.opcode) {
    case Opcode::flush: return {medium_->flush() == 0 ? status::success : status::write_fault};
    case Opcode::write: return {write(command, pi)};
    case Opcode::read: return {read(command, pi)};
    case Opcode::write_uncorrectable: return {write_uncorrectable(command)};
    case Opcode::compare: return {compare(command, pi)};
    case Opcode::write_zeroes: return {write_zeroes(command, pi)};
    case Opcode::dataset_management: return {deallocate(command)};
    case Opcode::verify: return {verify(command, pi)};
    case Opcode::copy: return copy(command);
    case Opcode::zone_append: return zone_append(command, pi);
    default: return {status::invalid_opcode.with_dnr()};
  }
}

Status EmulatedNamespace::check_range(std::uint64_t slba, std::uint64_t count) const {
  const std::uint64_t size = medium_->block_count();
  return slba < size && count <= size - slba ? status::success : status::lba_out_of_range.with_dnr();
}

Status EmulatedNamespace::check_lengths(const Command& command) const {
  const std::uint64_t count = command.block_count();
  if (const Status wrong = check_range(command.slba(), count); !wrong.ok()) return wrong;
  if (transfers_blocks(traits_of(command.opcode))) {
    const TransferLength length = transfer_length(medium_->format(), count, command.pract());
    if (options_.mdts != 0 && length.data > 4096ull << options_.mdts) return status::invalid_field.with_dnr();
    if (command.data_len != length.data) return status::data_sgl_length_invalid.with_dnr();
    if (command.metadata_len != length.metadata) return status::invalid_field.with_dnr();
  }
  const bool registered = command.fixed_buffer < static_cast<std::int64_t>(registered_.size());
  return registered ? status::success : status::data_transfer_error;
}

Status EmulatedNamespace::check_pi_fields(const Command& command, const PiControl& pi) const {
  const PiFormat& format = medium_->format();
  if (!format.has_pi() || !traits_of(command.opcode).has_pi) return status::success;
  const bool appends = command.opcode == Opcode::zone_append;
  const bool inserts = command.opcode == Opcode::write || command.opcode == Opcode::write_zeroes || appends;
  // A compare and a verify have no PRACT; zeroes are not checked.
  if (pi.pract && !inserts && command.opcode != Opcode::read) return status::invalid_field.with_dnr();
  if (command.opcode == Opcode::write_zeroes && pi.checks != PiChecks::none()) {
    return status::invalid_field.with_dnr();
  }
  // The address that a type 1 tag is made of is only known to the device, so it must remap; type 3 has no
  // address in its tag. Zoned Namespace Command Set Specification 1.1, section 3.4.1.
  const bool remaps = (command.cdw12 & Command::cdw12_bits::pi_remap) != 0;
  if (appends && format.type() == (remaps ? PiType::type_3 : PiType::type_1)) {
    return status::invalid_protection_information.with_dnr();
  }
  // With PRACT a write ignores the checks. Type 1 ties the initial reference tag to the address; for type 3
  // a reference check is invalid.
  const bool checks_ref_tag = pi.checks.ref_tag && !(pi.pract && inserts) && format.ref_tag_size() > 0;
  const bool wrong_ref_tag = format.type() == PiType::type_3 ||
                             (format.type() == PiType::type_1 &&
                              pi.tags.initial_ref_tag != ref_tag_of_lba(format, command.slba()));
  return checks_ref_tag && wrong_ref_tag ? status::invalid_protection_information.with_dnr() : status::success;
}

// Of commands that change blocks. The ranges of a copy and of Dataset Management are not known yet.
Status EmulatedNamespace::check_writable(const Command& command) const {
  switch (command.opcode) {
    case Opcode::dataset_management:
    case Opcode::copy:
      return options_.write_protected ? status::namespace_write_protected.with_dnr() : status::success;
    case Opcode::zone_append:
      if (!zones_) return status::invalid_opcode.with_dnr();
      break;
    case Opcode::write:
    case Opcode::write_zeroes:
    case Opcode::write_uncorrectable:
      break;
    default:
      return status::success;
  }
  if (options_.write_protected) return status::namespace_write_protected.with_dnr();
  if (!zones_) return status::success;
  if (command.opcode != Opcode::zone_append) return zones_.check_write(command.slba(), command.block_count());
  if (command.slba() != zones_.start_of(command.slba())) return status::invalid_field.with_dnr();
  return zones_.check_write(zones_.write_pointer(command.slba()), command.block_count());
}

Status EmulatedNamespace::write(const Command& command, const PiControl& pi) {
  fetch(command, stage_);
  if (pi.pract) {
    make_pi(stage_, pi.tags);
  } else if (const Status wrong = check_pi(stage_, command.slba(), pi.tags, pi.checks); !wrong.ok()) {
    return wrong;
  }
  return store(command.slba(), stage_);
}

// The host's tags are checked as they are, counted from the initial reference tag, and stored as if that had
// been the tag of the zone's first block.
EmulatedNamespace::Outcome EmulatedNamespace::zone_append(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  const std::uint64_t lba = zones_.write_pointer(command.slba());
  const bool remaps = format.has_pi() && (command.cdw12 & Command::cdw12_bits::pi_remap) != 0;
  PiTags tags = pi.tags;
  if (remaps) tags.initial_ref_tag = format.ref_tag_at(tags.initial_ref_tag, lba - command.slba());
  fetch(command, stage_);
  if (pi.pract) {
    make_pi(stage_, tags);
  } else {
    if (const Status wrong = check_pi(stage_, lba, pi.tags, pi.checks); !wrong.ok()) return {wrong};
    if (remaps) remap_pi(stage_, tags.initial_ref_tag);
  }
  return {store(lba, stage_), lba};
}

Status EmulatedNamespace::read(const Command& command, const PiControl& pi) {
  if (const Status failed = verify(command, pi); !failed.ok()) return failed;
  deliver(command, media_);
  return status::success;
}

Status EmulatedNamespace::verify(const Command& command, const PiControl& pi) {
  if (const Status failed = load(command.slba(), command.block_count(), media_); !failed.ok()) return failed;
  return check_pi(media_, command.slba(), pi.tags, pi.checks);
}

// Both sides are checked; data and the metadata beside the PI are compared.
Status EmulatedNamespace::compare(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  fetch(command, stage_);
  if (const Status wrong = check_pi(stage_, command.slba(), pi.tags, pi.checks); !wrong.ok()) return wrong;
  if (const Status failed = verify(command, pi); !failed.ok()) return failed;
  if (stage_.data != media_.data) return status::compare_failure;
  if (format.has_pi()) {
    for (std::size_t i = 0; i < command.block_count(); ++i) {
      const std::size_t pi_at = i * format.metadata_size() + format.pi_offset();
      std::copy_n(&media_.metadata[pi_at], format.pi_size(), &stage_.metadata[pi_at]);
    }
  }
  return stage_.metadata == media_.metadata ? status::success : status::compare_failure;
}

// DEAC deallocates only if such blocks read as zeros.
Status EmulatedNamespace::write_zeroes(const Command& command, const PiControl& pi) {
  const bool deallocates = (command.cdw12 & Command::cdw12_bits::deallocate) != 0 &&
                           (options_.dlfeat & 0b1111) == 0b1001;
  stage_.resize(medium_->format(), command.block_count());
  std::fill(stage_.data.begin(), stage_.data.end(), std::byte{0});
  std::fill(stage_.metadata.begin(), stage_.metadata.end(), std::byte{0});
  std::fill(stage_.states.begin(), stage_.states.end(),
            deallocates ? BlockState::unwritten : BlockState::written);
  if (pi.pract) make_pi(stage_, pi.tags);
  return store(command.slba(), stage_);
}

Status EmulatedNamespace::write_uncorrectable(const Command& command) {
  const std::vector<BlockState> states(command.block_count(), BlockState::uncorrectable);
  if (medium_->write_states(command.slba(), states) != 0) return status::write_fault;
  if (zones_) zones_.advance(command.slba(), command.block_count());
  return status::success;
}

Status EmulatedNamespace::deallocate(const Command& command) {
  const std::vector<BlockRange> ranges = parse_deallocate(command, command.data);
  for (const BlockRange& range : ranges) {
    if (const Status wrong = check_range(range.slba, range.block_count); !wrong.ok()) return wrong;
  }
  const std::vector<BlockState> unwritten(std::size_t{1} << 16, BlockState::unwritten);
  for (const BlockRange& range : ranges) {
    for (std::uint64_t done = 0; done < range.block_count; done += unwritten.size()) {
      const std::uint64_t count = std::min<std::uint64_t>(unwritten.size(), range.block_count - done);
      const auto states = std::span(unwritten).first(count);
      if (medium_->write_states(range.slba + done, states) != 0) return status::write_fault;
    }
  }
  return status::success;
}

// What concerns all ranges together.
Status EmulatedNamespace::check_copy(const CopyRequest& request) const {
  std::uint64_t total = 0;
  bool fits = request.ranges.size() <= options_.msrc + 1u;
  for (const CopyRange& range : request.ranges) {
    total += range.block_count;
    fits &= range.block_count <= options_.mssrl;
  }
  if (!fits || total > options_.mcl) return command_size_limit_exceeded.with_dnr();
  if (!zones_) return status::success;
  if (const Status wrong = check_range(request.destination, total); !wrong.ok()) return wrong;
  return zones_.check_write(request.destination, total);
}

EmulatedNamespace::Outcome EmulatedNamespace::copy(const Command& command) {
  const PiFormat& format = medium_->format();
  std::vector<CopyRange> ranges;
  const CopyRequest request = parse_copy(format, command, command.data, ranges);
  if (request.descriptor_format > 1) return {status::invalid_field.with_dnr()};
  if (request.descriptor_format != copy_descriptor_format(format)) {
    return {status::invalid_namespace_or_format.with_dnr()};
  }
  if (format.has_pi() && request.read_pract != request.write.pract) return {status::invalid_field.with_dnr()};
  if (const Status refused = check_copy(request); !refused.ok()) return {refused};

  std::uint64_t copied = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Status failed = copy_range(ranges[i], request, copied);
    if (!failed.ok()) return {failed, i};  // DW0: the first range that was not copied
    copied += ranges[i].block_count;
  }
  return {status::success};
}

Status EmulatedNamespace::copy_range(const CopyRange& range, const CopyRequest& request, std::uint64_t copied) {
  const PiFormat& format = medium_->format();
  const std::uint64_t destination = request.destination + copied;
  for (const std::uint64_t slba : {range.slba, destination}) {
    if (const Status wrong = check_range(slba, range.block_count); !wrong.ok()) return wrong;
  }
  if (const Status failed = load(range.slba, range.block_count, media_); !failed.ok()) return failed;
  const Status wrong = check_pi(media_, range.slba, range.expected, request.read_checks);
  if (!wrong.ok()) return wrong;
  PiTags tags = request.write.tags;
  tags.initial_ref_tag = format.ref_tag_at(tags.initial_ref_tag, copied);
  if (request.write.pract) {
    make_pi(media_, tags);
  } else if (const Status refused = check_pi(media_, destination, tags, request.write.checks); !refused.ok()) {
    return refused;
  }
  std::fill(media_.states.begin(), media_.states.end(), BlockState::written);
  return store(destination, media_);
}

}  // namespace nvpi
