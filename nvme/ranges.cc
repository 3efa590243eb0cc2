#include "nvme/ranges.h"

#include <algorithm>
#include <cassert>

#include "pi/tuple.h"

namespace nvpi {
namespace {

constexpr std::uint32_t dsm_deallocate = 1u << 2;  // CDW11, AD

// Where a source range has its tags. Both sizes have SLBA at byte 8 and NLB at 16.
struct DescriptorLayout {
  std::size_t size;
  std::size_t tags_at;    // ELBT: storage and reference tag
  std::size_t tags_size;  // bytes
};
constexpr DescriptorLayout descriptor_layouts[] = {{32, 24, 4}, {40, 26, 10}};

const DescriptorLayout& layout_of(std::uint8_t descriptor_format) {
  return descriptor_layouts[descriptor_format & 1];
}

void store(std::byte* target, std::size_t size, TagSpace value, TagOrder order = TagOrder::little_endian) {
  for (std::size_t i = 0; i < size; ++i, value >>= 8) {
    target[order == TagOrder::little_endian ? i : size - 1 - i] =
        static_cast<std::byte>(static_cast<std::uint8_t>(value));
  }
}

TagSpace load(const std::byte* source, std::size_t size) {
  TagSpace value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<unsigned>(source[i]);
  return value;
}

// PRINFO as a nibble: PRACT, guard, application tag, reference tag.
std::uint32_t prinfo_of(bool pract, const PiChecks& checks) {
  return (pract ? 8u : 0u) | (checks.guard ? 4u : 0u) | (checks.app_tag ? 2u : 0u) | (checks.ref_tag ? 1u : 0u);
}

}  // namespace

RangeCommand make_deallocate(std::uint32_t nsid, std::span<const BlockRange> ranges) {
  assert(!ranges.empty() && ranges.size() <= ranges_per_command);
  RangeCommand result;
  result.command = {.opcode = Opcode::dataset_management,
                    .nsid = nsid,
                    .cdw10 = static_cast<std::uint32_t>(ranges.size() - 1),
                    .cdw11 = dsm_deallocate};
  result.payload.resize(ranges.size() * dsm_range_size);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    assert(ranges[i].block_count <= blocks_per_dsm_range);
    std::byte* const range = &result.payload[i * dsm_range_size];
    store(range + 4, 4, ranges[i].block_count);
    store(range + 8, 8, ranges[i].slba);
  }
  return result;
}

std::vector<BlockRange> parse_deallocate(const Command& command, const std::byte* payload) {
  std::vector<BlockRange> ranges;
  if ((command.cdw11 & dsm_deallocate) == 0) return ranges;
  for (std::size_t i = 0; i <= (command.cdw10 & 0xFF); ++i, payload += dsm_range_size) {
    ranges.push_back({static_cast<std::uint64_t>(load(payload + 8, 8)),
                      static_cast<std::uint64_t>(load(payload + 4, 4))});
  }
  return ranges;
}

RangeCommand make_copy(const PiFormat& format, std::uint32_t nsid, const CopyRequest& request) {
  assert(!request.ranges.empty() && request.ranges.size() <= ranges_per_command);
  const DescriptorLayout& layout = layout_of(request.descriptor_format);
  RangeCommand result;
  Command& command = result.command;
  command = {.opcode = Opcode::copy,
             .nsid = nsid,
             .cdw10 = static_cast<std::uint32_t>(request.destination),
             .cdw11 = static_cast<std::uint32_t>(request.destination >> 32),
             .cdw12 = static_cast<std::uint32_t>(request.ranges.size() - 1) |
                      std::uint32_t{request.descriptor_format} << 8 |
                      prinfo_of(request.read_pract, request.read_checks) << 12};
  if (request.force_unit_access) command.cdw12 |= Command::cdw12_bits::force_unit_access;
  set_pi(command, format, request.write);
  result.payload.resize(request.ranges.size() * layout.size);
  for (std::size_t i = 0; i < request.ranges.size(); ++i) {
    const CopyRange& range = request.ranges[i];
    assert(range.block_count >= 1 && range.block_count <= 0x10000);
    std::byte* const descriptor = &result.payload[i * layout.size];
    store(descriptor, 4, range.snsid);
    store(descriptor + 8, 8, range.slba);
    store(descriptor + 16, 2, range.block_count - 1);
    if (!format.has_pi()) continue;
    const TagOrder order = request.tag_order;
    std::byte* const app_tag = descriptor + layout.tags_at + layout.tags_size;
    store(descriptor + layout.tags_at, layout.tags_size,
          join_tags(format, range.expected.storage_tag, range.expected.initial_ref_tag), order);
    store(app_tag, 2, range.expected.app_tag, order);
    store(app_tag + 2, 2, range.expected.app_tag_mask, order);
  }
  return result;
}

CopyRequest parse_copy(const PiFormat& format, const Command& command, const std::byte* payload,
                       std::vector<CopyRange>& ranges) {
  CopyRequest request{.ranges = {},
                      .destination = command.slba(),
                      .descriptor_format = static_cast<std::uint8_t>(command.cdw12 >> 8 & 0xF),
                      .write = pi_of(command, format),
                      .read_pract = (command.cdw12 >> 12 & 8) != 0,
                      .read_checks = {.guard = (command.cdw12 >> 12 & 4) != 0,
                                      .app_tag = (command.cdw12 >> 12 & 2) != 0,
                                      .storage_tag = false,
                                      .ref_tag = (command.cdw12 >> 12 & 1) != 0}};
  const DescriptorLayout& layout = layout_of(request.descriptor_format);
  ranges.clear();
  for (std::size_t i = 0; i <= (command.cdw12 & 0xFF); ++i, payload += layout.size) {
    CopyRange range{.slba = static_cast<std::uint64_t>(load(payload + 8, 8)),
                    .block_count = static_cast<std::uint32_t>(load(payload + 16, 2)) + 1,
                    .snsid = static_cast<std::uint32_t>(load(payload, 4)),
                    .expected = {}};
    if (format.has_pi()) {
      const TagSpace tags = load(payload + layout.tags_at, layout.tags_size);
      const std::byte* const app_tag = payload + layout.tags_at + layout.tags_size;
      range.expected = {
          .app_tag = static_cast<std::uint16_t>(load(app_tag, 2)),
          .app_tag_mask = static_cast<std::uint16_t>(load(app_tag + 2, 2)),
          .storage_tag = static_cast<std::uint64_t>(tags >> format.ref_tag_size()) & format.storage_tag_max(),
          .initial_ref_tag = static_cast<std::uint64_t>(tags) & format.ref_tag_max()};
    }
    ranges.push_back(range);
  }
  request.ranges = ranges;
  return request;
}

}  // namespace nvpi
