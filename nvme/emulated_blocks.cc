// The way of blocks between the host's memory, the emulation and the medium, and their PI.
// NVM Command Set Specification 1.0, sections 3.2.3.2.1 (deallocated blocks) and 5.2; Zoned Namespace Command
// Set Specification 1.1, section 5.3 (remapped reference tags).
#include <algorithm>
#include <cstring>

#include "nvme/emulated_namespace.h"
#include "pi/single_load.h"
#include "pi/tuple.h"

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

Blocks blocks_of(const StagedBlocks& stage) {
  // The functions of pi/ take what they may write to; verify() does not write.
  return {const_cast<std::byte*>(stage.data.data()), const_cast<std::byte*>(stage.metadata.data()),
          static_cast<std::uint32_t>(stage.count())};
}

}  // namespace

Status EmulatedNamespace::check_pi(const StagedBlocks& stage, std::uint64_t slba, const PiTags& tags,
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
void EmulatedNamespace::fetch(const Command& command, StagedBlocks& stage) {
  const PiFormat& format = medium_->format();
  if (options_.on_transfer) options_.on_transfer(command);
  stage.resize(format, command.block_count());
  std::fill(stage.states.begin(), stage.states.end(), BlockState::written);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(&stage.data[i * format.data_size()], data, format.data_size());
    if (metadata != nullptr) {
      copy_once(&stage.metadata[i * format.metadata_size()], metadata, format.metadata_size());
    }
  });
}

void EmulatedNamespace::deliver(const Command& command, const StagedBlocks& stage) {
  const PiFormat& format = medium_->format();
  if (options_.on_transfer) options_.on_transfer(command);
  for_each_block(command, format, [&](std::size_t i, std::byte* data, std::byte* metadata) {
    copy_once(data, &stage.data[i * format.data_size()], format.data_size());
    if (metadata != nullptr) {
      copy_once(metadata, &stage.metadata[i * format.metadata_size()], format.metadata_size());
    }
  });
}

Status EmulatedNamespace::load(std::uint64_t slba, std::uint64_t count, StagedBlocks& stage) {
  stage.resize(medium_->format(), count);
  if (faults_.read(*medium_, slba, stage) != 0) return status::unrecovered_read_error;
  for (std::size_t i = 0; i < count; ++i) {
    if (stage.states[i] == BlockState::uncorrectable) return status::unrecovered_read_error;
    if (stage.states[i] != BlockState::unwritten) continue;
    if (options_.dulbe) return status::deallocated_or_unwritten;
    make_unwritten(stage, i);
  }
  return status::success;
}

Status EmulatedNamespace::store(std::uint64_t slba, StagedBlocks& stage) {
  if (faults_.write(*medium_, slba, stage) != 0) return status::write_fault;
  if (zones_) zones_.advance(slba, stage.count());
  return status::success;
}

// As DLFEAT says, with tags of all ones, which switch the checks off whatever the guard is.
void EmulatedNamespace::make_unwritten(StagedBlocks& stage, std::size_t block) const {
  const PiFormat& format = medium_->format();
  std::byte* const data = &stage.data[block * format.data_size()];
  const int value = (options_.dlfeat & 7) == 2 ? 0xFF : 0;
  std::memset(data, value, format.data_size());
  if (format.metadata_size() == 0) return;
  std::byte* const metadata = &stage.metadata[block * format.metadata_size()];
  std::memset(metadata, value, format.metadata_size());
  if (!format.has_pi()) return;
  std::memset(metadata + format.pi_offset(), 0xFF, format.pi_size());
  if ((options_.dlfeat & 1 << 4) == 0) return;
  const PiTags ones{.app_tag = escape_app_tag,
                    .storage_tag = format.storage_tag_max(),
                    .initial_ref_tag = format.ref_tag_max()};
  generate(stored_format(format), ones, {data, metadata, 1});
}

void EmulatedNamespace::make_pi(StagedBlocks& stage, const PiTags& tags) const {
  if (medium_->format().has_pi()) generate(stored_format(medium_->format()), tags, blocks_of(stage));
}

void EmulatedNamespace::remap_pi(StagedBlocks& stage, std::uint64_t initial_ref_tag) const {
  const PiFormat& format = medium_->format();
  for (std::size_t i = 0; i < stage.count(); ++i) {
    std::byte* const pi = &stage.metadata[i * format.metadata_size() + format.pi_offset()];
    PiTuple tuple = decode_tuple(format, pi);
    tuple.ref_tag = format.ref_tag_at(initial_ref_tag, i);
    encode_tuple(format, tuple, pi);
  }
}

}  // namespace nvpi
