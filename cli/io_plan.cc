#include "cli/io_plan.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace nvpi::cli {
namespace {

// The checks that the device is asked for. What can fail by the user's own choice is only checked if asked:
// the application tag of a read is anybody's, unless one is given.
PiChecks device_checks(const IoOptions& options, PiOwner pi, const PiFormat& format) {
  PiChecks checks = PiChecks::none();
  if (options.prinfo) {
    checks = {.guard = (*options.prinfo & 4) != 0,
              .app_tag = (*options.prinfo & 2) != 0,
              .storage_tag = false,
              .ref_tag = (*options.prinfo & 1) != 0};
  } else if (pi == PiOwner::host || (pi == PiOwner::device && options.opcode == Opcode::read)) {
    const bool own_tags = options.opcode == Opcode::write;
    checks = {.guard = true,
              .app_tag = own_tags || options.app_tag.has_value(),
              .storage_tag = own_tags || options.storage_tag.has_value(),
              .ref_tag = true};
  }
  checks.storage_tag |= options.storage_tag_check;
  return applicable(checks, format);
}

// Everything but the block count.
tl::expected<IoPlan, std::string> plan_without_count(const IoOptions& options, const PiFormat& format) {
  const bool wants_pi = options.app_tag || options.app_tag_mask || options.ref_tag || options.storage_tag ||
                        options.prinfo || options.storage_tag_check || options.pi == PiOwner::device;
  if (wants_pi && !format.has_pi()) {
    return tl::make_unexpected(
        std::string("the namespace has no protection information; leave tags, --prinfo and --pi device out"));
  }
  const bool pract = options.prinfo && (*options.prinfo & 8) != 0;
  PiOwner pi = options.pi.value_or(pract                            ? PiOwner::device
                                   : options.metadata_file.empty() ? PiOwner::host
                                                                   : PiOwner::caller);
  if (options.prinfo && pract != (pi == PiOwner::device)) {
    return tl::make_unexpected(fmt::format("--prinfo {} and --pi contradict each other about PRACT",
                                           *options.prinfo));
  }
  const bool has_metadata_file = !options.metadata_file.empty();
  if (has_metadata_file && format.metadata_size() == 0) {
    return tl::make_unexpected(std::string("the namespace has no metadata; leave --metadata out"));
  }
  const bool raw = pi == PiOwner::caller && format.metadata_size() > 0;
  if (raw && !format.extended() && !has_metadata_file && options.opcode == Opcode::write) {
    return tl::make_unexpected(
        fmt::format("--pi none needs --metadata FILE with {} bytes a block", format.metadata_size()));
  }
  IoPlan plan{.io = {.opcode = options.opcode,
                   .slba = options.start_block,
                   .pi = pi,
                   .checks = {.app_tag = options.app_tag.has_value(),
                              .storage_tag = options.storage_tag.has_value()},
                   .device_checks = device_checks(options, pi, format),
                   .app_tag = options.app_tag.value_or(0),
                   .app_tag_mask = options.app_tag_mask.value_or(0xFFFF),
                   .storage_tag = options.storage_tag.value_or(0),
                   .ref_tag = options.ref_tag,
                   .allow_unprotected = options.allow_unprotected,
                   .force_unit_access = options.force_unit_access,
                   .limited_retry = options.limited_retry},
            .data_stride = format.data_size(),
            .interleaved = raw && format.extended() && !has_metadata_file};
  if (plan.interleaved) plan.data_stride += format.metadata_size();
  return plan;
}

// How many blocks a number of bytes is; a part of a block is refused with the sizes beside it.
tl::expected<std::uint64_t, std::string> blocks_in(std::uint64_t bytes, std::uint64_t stride,
                                                   const std::string& what) {
  if (bytes == 0) return tl::make_unexpected(fmt::format("{} is empty: nothing to transfer", what));
  const std::uint64_t blocks = bytes / stride;
  if (bytes % stride == 0) return blocks;
  const bool has_larger = bytes <= std::numeric_limits<std::uint64_t>::max() - stride;
  const std::string neighbours = blocks == 0   ? fmt::format("{}", stride)
                                 : has_larger ? fmt::format("{} or {}", blocks * stride, (blocks + 1) * stride)
                                              : fmt::format("{}", blocks * stride);
  return tl::make_unexpected(fmt::format("{} is {} bytes, which is no multiple of the block's {}: use {}",
                                         what, bytes, stride, neighbours));
}

std::string bytes_text(std::uint64_t blocks, std::uint64_t stride) {
  const bool fits = blocks <= std::numeric_limits<std::uint64_t>::max() / stride;
  return fits ? fmt::format("{} bytes", blocks * stride) : std::string("more bytes than there are numbers for");
}

// The block count from the options, checked against --data-size and, for a write, the file's length.
tl::expected<std::uint64_t, std::string> count_blocks(const IoOptions& options, const Namespace& ns,
                                                      const IoPlan& plan, const InputFile* input) {
  std::optional<std::uint64_t> count = options.block_count;
  if (count == 0) return tl::make_unexpected(std::string("--blocks 0: nothing to transfer"));
  if (options.data_size) {
    const auto sized = blocks_in(*options.data_size, plan.data_stride, "--data-size");
    if (!sized) return sized;
    if (count && *count != *sized) {
      return tl::make_unexpected(fmt::format("--data-size is {}, but {} blocks are exactly {}",
                                             *options.data_size, *count, bytes_text(*count, plan.data_stride)));
    }
    count = *sized;
  }
  if (input != nullptr) {
    if (!count) return blocks_in(input->size(), plan.data_stride, options.data_file);
    if (input->size() / plan.data_stride < *count) {
      return tl::make_unexpected(fmt::format("{} has {} bytes, but {} blocks need {}", options.data_file,
                                             input->size(), *count, bytes_text(*count, plan.data_stride)));
    }
  }
  if (!count && options.start_block >= ns.block_count()) {
    return tl::make_unexpected(fmt::format("LBA {} is outside the namespace, whose last LBA is {}",
                                           options.start_block, ns.block_count() - 1));
  }
  return count.value_or(ns.block_count() - options.start_block);
}

tl::expected<void, std::string> check_metadata_size(const IoOptions& options, const PiFormat& format,
                                                    std::uint64_t blocks, const InputFile& metadata) {
  const std::uint64_t needed = blocks * format.metadata_size();
  if (metadata.size() >= needed) return {};
  return tl::make_unexpected(fmt::format("{} has {} bytes, but the metadata of {} blocks is {}",
                                         options.metadata_file, metadata.size(), blocks, needed));
}

}  // namespace

tl::expected<IoPlan, std::string> make_plan(const IoOptions& options, const Namespace& ns,
                                            const InputFile* data, const InputFile* metadata) {
  auto plan = plan_without_count(options, ns.format());
  if (!plan) return plan;
  const auto blocks = count_blocks(options, ns, *plan, data);
  if (!blocks) return tl::make_unexpected(blocks.error());
  plan->io.block_count = *blocks;
  if (metadata != nullptr) {
    const auto sized = check_metadata_size(options, ns.format(), *blocks, *metadata);
    if (!sized) return tl::make_unexpected(sized.error());
  }
  return plan;
}

}  // namespace nvpi::cli
