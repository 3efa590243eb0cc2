#include "pi/protect.h"

#include <cassert>
#include <cstring>

#include "pi/single_load.h"

namespace nvpi {
namespace {

std::byte* data_of(const PiFormat& format, const Blocks& blocks, std::uint64_t index) {
  return blocks.data + index * format.data_stride();
}

std::byte* metadata_of(const PiFormat& format, const Blocks& blocks, std::uint64_t index) {
  return format.extended() ? data_of(format, blocks, index) + format.data_size()
                           : blocks.metadata + index * format.metadata_size();
}

// Calls step(run, done) for the contiguous runs of the next `size` bytes of user memory.
template <typename Step>
void for_each_run(UserMemory::Cursor& cursor, std::size_t size, Step step) {
  for (std::size_t done = 0; done < size;) {
    const auto run = cursor.next(size - done);
    step(run, done);
    done += run.size();
  }
}

void copy_in(std::byte* target, UserMemory::Cursor& source, std::size_t size) {
  for_each_run(source, size, [&](std::span<std::byte> run, std::size_t done) {
    copy_once(target + done, run.data(), run.size());
  });
}

void copy_out(UserMemory::Cursor& target, const std::byte* source, std::size_t size) {
  for_each_run(target, size, [&](std::span<std::byte> run, std::size_t done) {
    copy_once(run.data(), source + done, run.size());
  });
}

void erase(UserMemory::Cursor& target, std::size_t size) {
  for_each_run(target, size, [](std::span<std::byte> run, std::size_t) {
    std::memset(run.data(), 0, run.size());
  });
}

// Data is guarded on its way into the slot, from the one load of each byte.
std::uint64_t copy_in_and_guard(GuardType type, std::byte* target, UserMemory::Cursor& source,
                                std::size_t size) {
  std::uint64_t result = 0;
  for_each_run(source, size, [&](std::span<std::byte> run, std::size_t done) {
    const std::byte* readable_end = run.data() + run.size() + source.ahead().size();
    const bool in_one_piece = source.ahead().data() == run.data() + run.size();
    result = copy_and_guard(type, target + done, run, result, in_one_piece ? readable_end : nullptr);
  });
  return result;
}

// ... and on its way out of the slot, which is what stays the same there.
std::uint64_t copy_out_and_guard(GuardType type, UserMemory::Cursor& target, const std::byte* source,
                                 std::size_t size) {
  std::uint64_t result = 0;
  for_each_run(target, size, [&](std::span<std::byte> run, std::size_t done) {
    result = guard_and_copy(type, run.data(), {source + done, run.size()}, result);
  });
  return result;
}

std::uint64_t guard_metadata(const PiFormat& format, const std::byte* metadata, std::uint64_t previous) {
  if (format.guarded_metadata_size() == 0) return previous;
  return guard(format.guard(), {metadata, format.guarded_metadata_size()}, previous);
}

void write_tuple(const PiFormat& format, const PiTags& tags, std::uint64_t index,
                std::uint64_t data_guard, std::byte* metadata) {
  encode_tuple(format,
               {.guard = guard_metadata(format, metadata, data_guard),
                .app_tag = tags.app_tag,
                .storage_tag = tags.storage_tag,
                .ref_tag = format.ref_tag_at(tags.initial_ref_tag, index)},
               metadata + format.pi_offset());
}

void check_sizes([[maybe_unused]] const PiFormat& format, [[maybe_unused]] const Blocks& blocks,
                 [[maybe_unused]] const UserBlocks& user) {
  assert(user.data.size() == std::uint64_t{blocks.count} * format.data_size());
  assert(user.metadata.empty() ||
         user.metadata.size() == std::uint64_t{blocks.count} * format.metadata_size());
}

// Checks every block in turn. `guard_of_data(i)` yields the guard over the data of block i (and may copy
// it on the way); `settle(i, good)` ends block i.
template <typename GuardOfData, typename Settle>
VerifyCounts verify_blocks(const PiFormat& format, const Expectation& expected, const Blocks& blocks,
                           MismatchSink on_mismatch, GuardOfData guard_of_data, Settle settle) {
  VerifyCounts counts;
  for (std::uint32_t i = 0; i < blocks.count; ++i) {
    const std::uint64_t data_guard = guard_of_data(i);
    if (!format.has_pi()) {
      ++counts.unprotected;
      settle(i, true);
      continue;
    }
    const std::byte* metadata = metadata_of(format, blocks, i);
    const PiTuple tuple = decode_tuple(format, metadata + format.pi_offset());
    if (is_escape(format, tuple)) {
      ++counts.unprotected;
      settle(i, true);
      continue;
    }
    PiMismatch mismatch;
    const std::uint64_t computed =
        expected.checks.guard ? guard_metadata(format, metadata, data_guard) : 0;
    const bool good = check_tuple(format, expected, i, tuple, computed, mismatch);
    ++(good ? counts.verified : counts.mismatched);
    settle(i, good);
    if (!good && !on_mismatch(mismatch)) break;
  }
  return counts;
}

}  // namespace

void protect(const PiFormat& format, const PiTags& tags, const Blocks& target,
             const UserBlocks& source) noexcept {
  check_sizes(format, target, source);
  UserMemory::Cursor data(source.data);
  UserMemory::Cursor metadata(source.metadata);
  for (std::uint32_t i = 0; i < target.count; ++i) {
    std::byte* const block = data_of(format, target, i);
    std::uint64_t data_guard = 0;
    if (format.has_pi()) {
      data_guard = copy_in_and_guard(format.guard(), block, data, format.data_size());
    } else {
      copy_in(block, data, format.data_size());
    }
    if (format.metadata_size() == 0) continue;

    std::byte* const block_metadata = metadata_of(format, target, i);
    if (!source.metadata.empty()) {
      copy_in(block_metadata, metadata, format.metadata_size());
    } else if (!format.has_pi() || format.metadata_size() > format.pi_size()) {
      std::memset(block_metadata, 0, format.metadata_size());
    }
    if (format.has_pi()) write_tuple(format, tags, i, data_guard, block_metadata);
  }
}

void generate(const PiFormat& format, const PiTags& tags, const Blocks& blocks) noexcept {
  assert(format.has_pi());
  for (std::uint32_t i = 0; i < blocks.count; ++i) {
    const std::uint64_t data_guard =
        guard(format.guard(), {data_of(format, blocks, i), format.data_size()});
    write_tuple(format, tags, i, data_guard, metadata_of(format, blocks, i));
  }
}

bool check_tuple(const PiFormat& format, const Expectation& expected, std::uint32_t block_index,
                 const PiTuple& tuple, std::uint64_t computed_guard, PiMismatch& mismatch) noexcept {
  const PiTags& tags = expected.tags;
  const PiChecks& checks = expected.checks;
  const auto fails = [&](PiTag tag, std::uint64_t stored, std::uint64_t computed) {
    mismatch = {expected.first_lba + block_index, block_index, tag, stored, computed, tuple};
    return false;
  };
  if (checks.guard && tuple.guard != computed_guard) {
    return fails(PiTag::guard, tuple.guard, computed_guard);
  }
  if (checks.app_tag && ((tuple.app_tag ^ tags.app_tag) & tags.app_tag_mask) != 0) {
    return fails(PiTag::app_tag, tuple.app_tag, tags.app_tag);
  }
  if (checks.storage_tag &&
      ((tuple.storage_tag ^ tags.storage_tag) & format.storage_tag_mask()) != 0) {
    return fails(PiTag::storage_tag, tuple.storage_tag, tags.storage_tag);
  }
  const std::uint64_t ref_tag = format.ref_tag_at(tags.initial_ref_tag, block_index);
  if (checks.ref_tag && format.type() != PiType::type_3 && tuple.ref_tag != ref_tag) {
    return fails(PiTag::ref_tag, tuple.ref_tag, ref_tag);
  }
  return true;
}

VerifyCounts verify(const PiFormat& format, const Expectation& expected, const Blocks& blocks,
                    MismatchSink on_mismatch) noexcept {
  const auto guard_of_data = [&](std::uint32_t i) -> std::uint64_t {
    if (!format.has_pi() || !expected.checks.guard) return 0;
    return guard(format.guard(), {data_of(format, blocks, i), format.data_size()});
  };
  return verify_blocks(format, expected, blocks, on_mismatch, guard_of_data,
                       [](std::uint32_t, bool) {});
}

VerifyCounts verify_and_copy(const PiFormat& format, const Expectation& expected, const Blocks& source,
                             const UserBlocks& target, MismatchSink on_mismatch) noexcept {
  check_sizes(format, source, target);
  UserMemory::Cursor data(target.data);
  UserMemory::Cursor metadata(target.metadata);
  // Each block is copied while it is guarded, in one pass; if it fails, the copy is erased again.
  UserMemory::Cursor block_start = data;
  const auto guard_of_data = [&](std::uint32_t i) -> std::uint64_t {
    block_start = data;
    const std::byte* const block = data_of(format, source, i);
    if (format.has_pi() && expected.checks.guard) {
      return copy_out_and_guard(format.guard(), data, block, format.data_size());
    }
    copy_out(data, block, format.data_size());
    return 0;
  };
  const auto settle = [&](std::uint32_t i, bool good) {
    if (!good) erase(block_start, format.data_size());
    if (target.metadata.empty()) return;
    if (good) {
      copy_out(metadata, metadata_of(format, source, i), format.metadata_size());
    } else {
      erase(metadata, format.metadata_size());
    }
  };
  return verify_blocks(format, expected, source, on_mismatch, guard_of_data, settle);
}

}  // namespace nvpi
