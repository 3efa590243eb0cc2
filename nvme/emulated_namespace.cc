#include "nvme/emulated_namespace.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "pi/single_load.h"

namespace nvpi {
namespace {

// In memory and on the medium, blocks and metadata lie apart whatever the namespace transfers.
PiFormat stored_format(const PiFormat& format) {
  PiFormat::Fields fields = format.fields();
  fields.layout = MetadataLayout::separate;
  return *PiFormat::create(fields);
}

Status status_of(PiTag tag) {
  switch (tag) {
    case PiTag::guard: return status::guard_check_error;
    case PiTag::app_tag: return status::app_tag_check_error;
    case PiTag::storage_tag: return status::storage_tag_check_error;
    case PiTag::ref_tag: return status::ref_tag_check_error;
  }
  return status::guard_check_error;
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

}  // namespace

Result<std::unique_ptr<EmulatedNamespace>> EmulatedNamespace::create(const Options& options) {
  const auto format = PiFormat::create(options.format);
  if (!format) {
    return fail({.code = Errc::bad_option, .rule = format.error().rule, .value = format.error().value,
                 .detail = std::string(format.error().field)});
  }
  if (options.block_count == 0) {
    return fail({.code = Errc::bad_option, .rule = "must be at least one block", .detail = "size"});
  }
  auto medium = options.file.empty() ? Medium::in_memory(*format, options.block_count)
                                     : Medium::in_file(options.file, *format, options.block_count);
  if (!medium) return fail(medium.error());
  return std::unique_ptr<EmulatedNamespace>(new EmulatedNamespace(options, std::move(*medium)));
}

EmulatedNamespace::EmulatedNamespace(Options options, std::unique_ptr<Medium> medium)
    : options_(std::move(options)), medium_(std::move(medium)), pending_(options_.capacity) {}

Result<IdentifyPage> EmulatedNamespace::identify(Cns cns) {
  switch (cns) {
    case Cns::identify_namespace:
      return encode_namespace(medium_->format(), medium_->block_count()).base;
    case Cns::identify_namespace_csi:
      return encode_namespace(medium_->format(), medium_->block_count()).extension;
    case Cns::identify_controller:
      return encode_controller(options_.mdts);
  }
  return fail({.code = Errc::status, .status = status::invalid_field.with_dnr()});
}

bool EmulatedNamespace::register_buffers(std::span<const iovec> buffers) {
  registered_.assign(buffers.begin(), buffers.end());
  return true;
}

Result<void> EmulatedNamespace::submit(const Command& command, std::uint64_t user_data) {
  if (tail_ - head_ == pending_.size()) return fail({.code = Errc::os, .os_errno = EAGAIN});
  pending_[tail_++ % pending_.size()] = {command, user_data};
  return {};
}

Result<std::uint32_t> EmulatedNamespace::reap(std::span<Completion> completions,
                                              std::chrono::milliseconds) {
  std::uint32_t count = 0;
  while (count < completions.size() && head_ != tail_) {
    const Pending& pending = pending_[head_++ % pending_.size()];
    const Status result = execute(pending.command);
    completions[count++] = {.user_data = pending.user_data, .result = result.raw()};
  }
  return count;
}

Status EmulatedNamespace::execute(const Command& command) {
  if (command.nsid != nsid()) return status::invalid_namespace_or_format.with_dnr();
  if (command.opcode == Opcode::flush) {
    return medium_->flush() == 0 ? status::success : status::write_fault;
  }
  if (command.opcode != Opcode::read && command.opcode != Opcode::write) {
    return status::invalid_opcode.with_dnr();
  }
  const PiControl pi = pi_of(command, medium_->format());
  if (const Status wrong = check_fields(command, pi); !wrong.ok()) return wrong;

  const std::size_t count = command.block_count();
  staging_data_.resize(count * medium_->format().data_size());
  staging_metadata_.resize(count * medium_->format().metadata_size());
  staging_states_.resize(count);
  return command.opcode == Opcode::write ? write(command, pi) : read(command, pi);
}

Status EmulatedNamespace::check_fields(const Command& command, const PiControl& pi) const {
  const PiFormat& format = medium_->format();
  const std::uint64_t count = command.block_count();
  if (command.slba() >= medium_->block_count() || count > medium_->block_count() - command.slba()) {
    return status::lba_out_of_range.with_dnr();
  }
  const TransferLength length = transfer_length(format, count, command.pract());
  if (options_.mdts != 0 && length.data > 4096ull << options_.mdts) {
    return status::invalid_field.with_dnr();
  }
  if (command.data_len != length.data) return status::data_sgl_length_invalid.with_dnr();
  if (command.metadata_len != length.metadata) return status::invalid_field.with_dnr();
  if (command.fixed_buffer >= static_cast<std::int64_t>(registered_.size())) {
    return status::data_transfer_error;
  }
  // Section 5.2.2: with PRACT a write ignores the checks. Type 1 ties the initial reference tag to the
  // address; for type 3 a reference check is invalid.
  const bool checks_ref_tag =
      format.has_pi() && pi.checks.ref_tag && !(pi.pract && command.opcode == Opcode::write);
  const bool wrong_ref_tag =
      format.type() == PiType::type_3 ||
      (format.type() == PiType::type_1 &&
       pi.tags.initial_ref_tag != ref_tag_of_lba(format, command.slba()));
  if (checks_ref_tag && format.ref_tag_size() > 0 && wrong_ref_tag) {
    return status::invalid_protection_information.with_dnr();
  }
  return status::success;
}

Blocks EmulatedNamespace::staged(std::uint32_t block_count) {
  return {staging_data_.data(), staging_metadata_.data(), block_count};
}

Status EmulatedNamespace::check_blocks(const Command& command, const PiControl& pi) {
  if (!medium_->format().has_pi()) return status::success;
  Status result = status::success;
  const auto first = [&](const PiMismatch& mismatch) {
    result = status_of(mismatch.tag);
    return false;
  };
  const PiFormat stored = stored_format(medium_->format());
  verify(stored, {.tags = pi.tags, .checks = pi.checks, .first_lba = command.slba()},
         staged(command.block_count()), first);
  return result;
}

Status EmulatedNamespace::write(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  if (options_.on_transfer) options_.on_transfer(command);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(&staging_data_[i * format.data_size()], data, format.data_size());
    if (metadata != nullptr) {
      copy_once(&staging_metadata_[i * format.metadata_size()], metadata, format.metadata_size());
    }
  });
  if (format.has_pi() && pi.pract) {
    generate(stored_format(format), pi.tags, staged(command.block_count()));
  } else if (const Status wrong = check_blocks(command, pi); !wrong.ok()) {
    return wrong;
  }
  std::fill(staging_states_.begin(), staging_states_.end(), BlockState::written);
  const bool stored = medium_->write_data(command.slba(), staging_data_) == 0 &&
                      medium_->write_metadata(command.slba(), staging_metadata_) == 0 &&
                      medium_->write_states(command.slba(), staging_states_) == 0;
  return stored ? status::success : status::write_fault;
}

Status EmulatedNamespace::read(const Command& command, const PiControl& pi) {
  const PiFormat& format = medium_->format();
  const bool readable = medium_->read_data(command.slba(), staging_data_) == 0 &&
                        medium_->read_metadata(command.slba(), staging_metadata_) == 0 &&
                        medium_->read_states(command.slba(), staging_states_) == 0;
  if (!readable) return status::unrecovered_read_error;
  // Section 3.2.3.2.1: an unwritten block reads as zeros with PI of all ones, which checks nothing.
  for (std::size_t i = 0; i < command.block_count(); ++i) {
    if (staging_states_[i] != BlockState::unwritten) continue;
    std::memset(&staging_data_[i * format.data_size()], 0, format.data_size());
    if (format.metadata_size() == 0) continue;
    std::byte* const metadata = &staging_metadata_[i * format.metadata_size()];
    std::memset(metadata, 0, format.metadata_size());
    if (format.has_pi()) std::memset(metadata + format.pi_offset(), 0xFF, format.pi_size());
  }
  if (const Status wrong = check_blocks(command, pi); !wrong.ok()) return wrong;

  if (options_.on_transfer) options_.on_transfer(command);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(data, &staging_data_[i * format.data_size()], format.data_size());
    if (metadata != nullptr) {
      copy_once(metadata, &staging_metadata_[i * format.metadata_size()], format.metadata_size());
    }
  });
  return status::success;
}

}  // namespace nvpi
