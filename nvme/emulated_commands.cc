// What the emulated namespace does with each command. NVM Command Set Specification 1.0, sections 3.2
// (commands) and 5.2.2 (protection information).
#include <algorithm>
#include <cstring>

#include "nvme/emulated_namespace.h"
#include "pi/single_load.h"

namespace nvpi {
namespace {

// In memory and on the medium, data and metadata lie apart whatever the namespace transfers.
PiFormat stored_format(const PiFormat& format) {
  PiFormat::Fields fields = format.fields();
  fields.layout = MetadataLayout::separate;
  return *PiFormat::create(fields);
}

Status status_of(PiTag tag) {
  constexpr Status by_tag[] = {status::guard_check_error, status::app_tag_check_error,
                               status::storage_tag_check_error, status::ref_tag_check_error};
  return by_tag[static_cast<unsigned>(tag)];
}

// The memory of a command, block by block: `step(i, data, metadata)`, where metadata is null if none is
// transferred.
template <typename Step>
void for_each_block(const Command& command, const PiFormat& format, Step step) {
  const PiFormat transferred = transferred_format(format, command.pract());
  for (std::size_t i = 0; i < command.block_count(); ++i) {
    std::byte* const data = command.data + i * transferred.data_stride();
    std::byte* metadata = nullptr;
    if (transferred.extended()) {
      metadata = data + transferred.data_size();
    } else if (transferred.metadata_size() > 0) {
      metadata = command.metadata + i * transferred.metadata_size();
    }
    step(i, data, metadata);
  }
}

template <typename Stage>
Blocks blocks_of(Stage& stage) {
  // The functions of pi/ take what they may write to; verify() does not write.
  return {const_cast<std::byte*>(stage.data.data()), const_cast<std::byte*>(stage.metadata.data()),
          static_cast<std::uint32_t>(stage.states.size())};
}

}  // namespace

EmulatedNamespace::Outcome EmulatedNamespace::execute(const Command& command) {
  if (command.nsid != nsid()) return {status::invalid_namespace_or_format.with_dnr()};
  const PiControl pi = pi_of(command, medium_->format());
  if (traits_of(command.opcode).addresses_blocks) {
    if (const Status wrong = check_fields(command, pi); !wrong.ok()) return {wrong};
  }
  if (traits_of(command.opcode).direction == Direction::ranges &&
      !check_command(command, medium_->format(), medium_->block_count())) {
    return {status::data_sgl_length_invalid.with_dnr()};
  }
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
    default: return {status::invalid_opcode.with_dnr()};
  }
}

Status EmulatedNamespace::check_range(std::uint64_t slba, std::uint64_t count) const {
  const std::uint64_t size = medium_->block_count();
  return slba < size && count <= size - slba ? status::success : status::lba_out_of_range.with_dnr();
}

Status EmulatedNamespace::check_fields(const Command& command, const PiControl& pi) const {
  const PiFormat& format = medium_->format();
  const std::uint64_t count = command.block_count();
  if (const Status wrong = check_range(command.slba(), count); !wrong.ok()) return wrong;
  const OpcodeTraits traits = traits_of(command.opcode);
  if (transfers_blocks(traits)) {
    const TransferLength length = transfer_length(format, count, command.pract());
    if (options_.mdts != 0 && length.data > 4096ull << options_.mdts) return status::invalid_field.with_dnr();
    if (command.data_len != length.data) return status::data_sgl_length_invalid.with_dnr();
    if (command.metadata_len != length.metadata) return status::invalid_field.with_dnr();
  }
  if (command.fixed_buffer >= static_cast<std::int64_t>(registered_.size())) {
    return status::data_transfer_error;
  }
  if (!format.has_pi() || !traits.has_pi) return status::success;
  // A compare and a verify have no PRACT; zeroes are not checked.
  const bool inserts = command.opcode == Opcode::write || command.opcode == Opcode::write_zeroes;
  if (pi.pract && !inserts && command.opcode != Opcode::read) return status::invalid_field.with_dnr();
  if (command.opcode == Opcode::write_zeroes && pi.checks != PiChecks::none()) {
    return status::invalid_field.with_dnr();
  }
  // With PRACT a write ignores the checks. Type 1 ties the initial reference tag to the address; for type 3
  // a reference check is invalid.
  const bool checks_ref_tag = pi.checks.ref_tag && !(pi.pract && inserts) && format.ref_tag_size() > 0;
  const bool wrong_ref_tag = format.type() == PiType::type_3 ||
                             (format.type() == PiType::type_1 &&
                              pi.tags.initial_ref_tag != ref_tag_of_lba(format, command.slba()));
  return checks_ref_tag && wrong_ref_tag ? status::invalid_protection_information.with_dnr() : status::success;
}

Status EmulatedNamespace::check_pi(const Stage& stage, std::uint64_t slba, const PiTags& tags,
                                   const PiChecks& checks) const {
  if (!medium_->format().has_pi()) return status::success;
  Status result = status::success;
  const auto first = [&](const PiMismatch& mismatch) {
    result = status_of(mismatch.tag);
    return false;
  };
  nvpi::verify(stored_format(medium_->format()), {.tags = tags, .checks = checks, .first_lba = slba},
               blocks_of(stage), first);
  return result;
}

// From the host's memory, each byte once.
void EmulatedNamespace::fetch(const Command& command, Stage& stage) {
  const PiFormat& format = medium_->format();
  if (options_.on_transfer) options_.on_transfer(command);
  stage.data.resize(command.block_count() * std::size_t{format.data_size()});
  stage.metadata.resize(command.block_count() * std::size_t{format.metadata_size()});
  stage.states.assign(command.block_count(), BlockState::written);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(&stage.data[i * format.data_size()], data, format.data_size());
    if (metadata != nullptr) {
      copy_once(&stage.metadata[i * format.metadata_size()], metadata, format.metadata_size());
    }
  });
}

void EmulatedNamespace::deliver(const Command& command, const Stage& stage) {
  const PiFormat& format = medium_->format();
  if (options_.on_transfer) options_.on_transfer(command);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(data, &stage.data[i * format.data_size()], format.data_size());
    if (metadata != nullptr) {
      copy_once(metadata, &stage.metadata[i * format.metadata_size()], format.metadata_size());
    }
  });
}

Status EmulatedNamespace::load(std::uint64_t slba, std::uint64_t count, Stage& stage) {
  const PiFormat& format = medium_->format();
  stage.data.resize(count * format.data_size());
  stage.metadata.resize(count * format.metadata_size());
  stage.states.resize(count);
  const bool readable = medium_->read_data(slba, stage.data) == 0 &&
                        medium_->read_metadata(slba, stage.metadata) == 0 &&
                        medium_->read_states(slba, stage.states) == 0;
  if (!readable) return status::unrecovered_read_error;
  // Section 3.2.3.2.1: an unwritten block reads as zeros with PI of all ones, which checks nothing.
  for (std::size_t i = 0; i < count; ++i) {
    if (stage.states[i] == BlockState::uncorrectable) return status::unrecovered_read_error;
    if (stage.states[i] != BlockState::unwritten) continue;
    std::memset(&stage.data[i * format.data_size()], 0, format.data_size());
    if (format.metadata_size() == 0) continue;
    std::byte* const metadata = &stage.metadata[i * format.metadata_size()];
    std::memset(metadata, 0, format.metadata_size());
    if (format.has_pi()) std::memset(metadata + format.pi_offset(), 0xFF, format.pi_size());
  }
  return status::success;
}

Status EmulatedNamespace::store(std::uint64_t slba, const Stage& stage) {
  const bool stored = medium_->write_data(slba, stage.data) == 0 &&
                      medium_->write_metadata(slba, stage.metadata) == 0 &&
                      medium_->write_states(slba, stage.states) == 0;
  return stored ? status::success : status::write_fault;
}

Status EmulatedNamespace::write(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  fetch(command, stage_);
  if (format.has_pi() && pi.pract) {
    generate(stored_format(format), pi.tags, blocks_of(stage_));
  } else if (const Status wrong = check_pi(stage_, command.slba(), pi.tags, pi.checks); !wrong.ok()) {
    return wrong;
  }
  return store(command.slba(), stage_);
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

Status EmulatedNamespace::write_zeroes(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  const bool deallocates = (command.cdw12 & Command::cdw12_bits::deallocate) != 0;
  stage_.data.assign(command.block_count() * std::size_t{format.data_size()}, std::byte{0});
  stage_.metadata.assign(command.block_count() * std::size_t{format.metadata_size()}, std::byte{0});
  stage_.states.assign(command.block_count(), deallocates ? BlockState::unwritten : BlockState::written);
  if (format.has_pi() && pi.pract) generate(stored_format(format), pi.tags, blocks_of(stage_));
  return store(command.slba(), stage_);
}

Status EmulatedNamespace::write_uncorrectable(const Command& command) {
  const std::vector<BlockState> states(command.block_count(), BlockState::uncorrectable);
  return medium_->write_states(command.slba(), states) == 0 ? status::success : status::write_fault;
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

EmulatedNamespace::Outcome EmulatedNamespace::copy(const Command& command) {
  const PiFormat& format = medium_->format();
  std::vector<CopyRange> ranges;
  const CopyRequest request = parse_copy(format, command, command.data, ranges);
  if (request.descriptor_format > 1) return {status::invalid_field.with_dnr()};
  if (request.descriptor_format != copy_descriptor_format(format)) {
    return {status::invalid_namespace_or_format.with_dnr()};
  }
  if (format.has_pi() && request.read_pract != request.write.pract) return {status::invalid_field.with_dnr()};

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
  if (format.has_pi() && request.write.pract) {
    generate(stored_format(format), tags, blocks_of(media_));
  } else if (const Status refused = check_pi(media_, destination, tags, request.write.checks); !refused.ok()) {
    return refused;
  }
  std::fill(media_.states.begin(), media_.states.end(), BlockState::written);
  return store(destination, media_);
}

}  // namespace nvpi
