#include "nvme/io.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace nvpi {
namespace {

constexpr std::uint64_t nlb_limit = 0x10000;  // NLB is a 16-bit, 0's based field

// Whether the device makes or strips the PI. A compare has no PRACT: the host's data needs PI to be compared,
// so the driver makes it as for a write. Zeroes always get PI from the device, because without PRACT they
// would be left with PI that fails (NVM Command Set Specification 1.0, section 3.2.8).
bool pract_of(const Io& io) {
  if (io.opcode == Opcode::write_zeroes) return io.pi != PiOwner::caller;
  const bool may = io.opcode != Opcode::compare && io.opcode != Opcode::verify;
  return may && io.pi == PiOwner::device;
}

bool tag_checked(const Io& io, bool PiChecks::*tag) {
  return io.device_checks.*tag || (io.pi == PiOwner::host && io.checks.*tag);
}

Result<void> check_size(std::string_view field, const UserMemory& memory, std::uint64_t wanted) {
  if (memory.size() == wanted) return {};
  return fail({.code = Errc::wrong_length, .field = field, .value = memory.size(), .limit = wanted});
}

Result<void> check_in_place(std::string_view field, const UserMemory& memory) {
  const std::byte* base = memory.contiguous();
  if (base == nullptr) return fail({.code = Errc::not_contiguous, .field = field});
  if (reinterpret_cast<std::uintptr_t>(base) % 4 != 0) {
    return fail({.code = Errc::unaligned, .field = field, .limit = 4});
  }
  return {};
}

Result<void> check_memory(const Io& io, const PiFormat& format) {
  if (!transfers_blocks(traits_of(io.opcode))) {
    return check_size("data", io.memory.data, 0).and_then([&] {
      return check_size("metadata", io.memory.metadata, 0);
    });
  }
  const TransferLength block = transfer_length(format, 1, pract_of(io));
  const bool in_place = io.mode == TransferMode::zero_copy;
  const std::uint64_t data_stride = in_place ? block.data : format.data_size();
  const UserBlocks& memory = io.memory;
  if (const auto sized = check_size("data", memory.data, io.block_count * data_stride); !sized) {
    return sized;
  }
  if (!memory.metadata.empty()) {
    const std::uint64_t behind_data = block.data - format.data_size();  // extended layout
    const std::uint64_t metadata_stride = block.metadata + (in_place ? 0 : behind_data);
    const auto sized = check_size("metadata", memory.metadata, io.block_count * metadata_stride);
    if (!sized) return sized;
  }
  if (!in_place) return {};
  if (const auto placed = check_in_place("data", memory.data); !placed) return placed;
  return memory.metadata.empty() ? Result<void>{} : check_in_place("metadata", memory.metadata);
}

Result<void> check_tags(const Io& io, const PiFormat& format) {
  if (!format.has_pi()) return {};
  const auto too_large = [](std::string_view field, std::uint64_t value, std::uint64_t limit) {
    return fail({.code = Errc::tag_too_large, .field = field, .value = value, .limit = limit});
  };
  if (io.storage_tag > format.storage_tag_max()) {
    return too_large("storage tag", io.storage_tag, format.storage_tag_max());
  }
  if (io.ref_tag && *io.ref_tag > format.ref_tag_max()) {
    return too_large("reference tag", *io.ref_tag, format.ref_tag_max());
  }
  const std::uint64_t demanded = ref_tag_of_lba(format, io.slba);
  const bool matters = io.pi != PiOwner::caller || tag_checked(io, &PiChecks::ref_tag);
  if (format.type() == PiType::type_1 && matters && io.ref_tag && *io.ref_tag != demanded) {
    return fail({.code = Errc::ref_tag_conflict, .value = *io.ref_tag, .limit = demanded});
  }
  const bool stores_tags = io.opcode == Opcode::write || io.opcode == Opcode::write_zeroes ||
                           io.opcode == Opcode::zone_append;
  if (stores_tags && io.pi != PiOwner::caller && io.app_tag == escape_app_tag &&
      !io.allow_unprotected) {
    return fail({.code = Errc::unprotecting_app_tag, .value = io.app_tag});
  }
  return {};
}

PiControl pi_control_of(const Io& io, const PiFormat& format) {
  const bool zeroes = io.opcode == Opcode::write_zeroes;
  return {.pract = pract_of(io),
          .checks = zeroes ? PiChecks::none() : applicable(io.device_checks, format),
          .tags = tags_of(io, format)};
}

}  // namespace

Result<void> check_request(const Io& io, const Geometry& geometry) noexcept {
  assert(traits_of(io.opcode).addresses_blocks);
  if (io.block_count == 0) return fail({.code = Errc::no_blocks});
  if (io.slba >= geometry.block_count || io.block_count > geometry.block_count - io.slba) {
    return fail({.code = Errc::out_of_range,
                 .value = io.slba > ~io.block_count ? ~0ull : io.slba + io.block_count - 1,
                 .limit = geometry.block_count - 1,
                 .slba = io.slba});
  }
  return check_tags(io, geometry.format);
}

Result<void> check_io(const Io& io, const Geometry& geometry) noexcept {
  return check_request(io, geometry).and_then([&] { return check_memory(io, geometry.format); });
}

std::uint64_t max_blocks_per_command(const Geometry& geometry, PiOwner pi, Opcode opcode) noexcept {
  if (!transfers_blocks(traits_of(opcode))) return nlb_limit;
  const std::uint64_t stride = transfer_length(geometry.format, 1, pract_of({.opcode = opcode, .pi = pi})).data;
  const auto fit = [](std::uint64_t limit, std::uint64_t block) {
    return limit == 0 ? std::numeric_limits<std::uint64_t>::max() : limit / block;
  };
  const std::uint64_t counted = geometry.mdts_excludes_metadata ? geometry.format.data_size() : stride;
  return std::min({nlb_limit, fit(geometry.max_transfer_size, counted),
                   fit(geometry.transfer_limit, stride)});
}

Io part_of(const Io& io, const Geometry& geometry, std::uint64_t first, std::uint64_t count) noexcept {
  assert(first + count <= io.block_count);
  const auto part = [&](const UserMemory& memory) {
    const std::uint64_t stride = memory.size() / io.block_count;
    return memory.subview(first * stride, count * stride);
  };
  Io result = io;
  result.slba += first;
  result.block_count = count;
  result.memory = {part(io.memory.data), part(io.memory.metadata)};
  result.ref_tag = geometry.format.ref_tag_at(tags_of(io, geometry.format).initial_ref_tag, first);
  return result;
}

TransferredFormats::TransferredFormats(const PiFormat& format)
    : whole_(format), by_device_(transferred_format(format, true)), by_caller_(format.without_pi()) {}

const PiFormat& TransferredFormats::of(const Io& io) const {
  if (io.pi == PiOwner::caller) return by_caller_;
  return pract_of(io) ? by_device_ : whole_;
}

PiTags tags_of(const Io& io, const PiFormat& format) noexcept {
  const std::uint64_t from_address =
      format.type() == PiType::type_3 ? 0 : ref_tag_of_lba(format, io.slba);
  return {.app_tag = io.app_tag,
          .app_tag_mask = io.app_tag_mask,
          .storage_tag = io.storage_tag,
          .initial_ref_tag = io.ref_tag.value_or(from_address)};
}

PiChecks applicable(const PiChecks& checks, const PiFormat& format) noexcept {
  if (!format.has_pi()) return PiChecks::none();
  PiChecks result = checks;
  if (format.type() == PiType::type_3 || format.ref_tag_size() == 0) result.ref_tag = false;
  if (format.storage_tag_size() == 0) result.storage_tag = false;
  return result;
}

Command command_of(const Io& io, const Geometry& geometry) noexcept {
  using bits = Command::cdw12_bits;
  const PiFormat& format = geometry.format;
  const OpcodeTraits traits = traits_of(io.opcode);
  Command command =
      make_io(io.opcode, geometry.nsid, io.slba, static_cast<std::uint32_t>(io.block_count));
  command.timeout_ms = io.timeout_ms;
  if (traits.has_pi) {
    set_pi(command, format, pi_control_of(io, format));
    if (io.force_unit_access) command.cdw12 |= bits::force_unit_access;
    if (io.limited_retry) command.cdw12 |= bits::limited_retry;
  }
  if (io.opcode == Opcode::write || io.opcode == Opcode::zone_append) {
    command.cdw12 |= static_cast<std::uint32_t>(io.directive_type & 0xF) << 20;
    command.cdw13 = std::uint32_t{io.directive_value} << 16;
  }
  if (io.opcode == Opcode::write_zeroes && io.deallocate) command.cdw12 |= bits::deallocate;
  if (io.opcode == Opcode::zone_append && format.type() == PiType::type_1) command.cdw12 |= bits::pi_remap;
  if (transfers_blocks(traits)) {
    const TransferLength length = transfer_length(format, io.block_count, command.pract());
    command.data_len = static_cast<std::uint32_t>(length.data);
    command.metadata_len = static_cast<std::uint32_t>(length.metadata);
  }
  return command;
}

}  // namespace nvpi
