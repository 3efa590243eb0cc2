#include "pi/protect.h"

#include <cassert>
#include <cstring>

#include "pi/guard_kernels.h"
#include "pi/walk.h"

namespace nvpi {
namespace {

[[gnu::noinline]] void erase_block(const UserMemory& target, std::uint64_t index,
                                   std::size_t size) {
  UserWalk(target.subview(index * size, size)).erase(size);
}

// Data is guarded on its way into the slot, from the one load of each byte. A block that lies in
// several pieces is a case apart: it keeps the usual one short.
[[gnu::noinline]] std::uint64_t copy_pieces_in(GuardKernel::CopyAndGuard copy_and_guard,
                                               std::byte* target, UserWalk& source,
                                               std::size_t size) {
  std::uint64_t result = 0;
  source.for_each_run(size, [&](std::span<std::byte> run, std::size_t done) {
    result = copy_and_guard(target + done, run.data(), run.size(), result, source.piece_end());
  });
  return result;
}

std::uint64_t copy_in_and_guard(GuardKernel::CopyAndGuard copy_and_guard, std::byte* target,
                                UserWalk& source, std::size_t size) {
  const std::byte* const whole = source.whole(size);
  if (whole == nullptr) return copy_pieces_in(copy_and_guard, target, source, size);
  return copy_and_guard(target, whole, size, 0, source.piece_end());
}

// ... and on its way out of the slot, which is what stays the same there.
[[gnu::noinline]] std::uint64_t copy_pieces_out(GuardKernel::CopyAndGuard guard_and_copy,
                                                UserWalk& target, const std::byte* source,
                                                std::size_t size) {
  std::uint64_t result = 0;
  target.for_each_run(size, [&](std::span<std::byte> run, std::size_t done) {
    result = guard_and_copy(run.data(), source + done, run.size(), result, nullptr);
  });
  return result;
}

std::uint64_t copy_out_and_guard(GuardKernel::CopyAndGuard guard_and_copy, UserWalk& target,
                                 const std::byte* source, std::size_t size) {
  std::byte* const whole = target.whole(size);
  if (whole == nullptr) return copy_pieces_out(guard_and_copy, target, source, size);
  return guard_and_copy(whole, source, size, 0, nullptr);
}

std::uint64_t guard_metadata(const PiFormat& format, const std::byte* metadata,
                             std::uint64_t previous) {
  if (format.guarded_metadata_size() == 0) return previous;
  return guard(format.guard(), {metadata, format.guarded_metadata_size()}, previous);
}

// The tuples of a run of blocks. What they have in common is put together once.
class Tuples {
 public:
  Tuples(const PiFormat& format, const PiTags& tags)
      : guard_shift_(guard_shift(format)),
        wide_(format.pi_size() > 8),
        ref_tag_(tags.initial_ref_tag),
        ref_tag_max_(format.ref_tag_max()),
        ref_tag_step_(format.type() == PiType::type_3 ? 0 : 1),
        common_(number_of_tags(format, tags.app_tag, tags.storage_tag, 0)) {}

  // The tuple of the next block.
  TupleNumber next(std::uint64_t guard) {
    const TupleNumber top = guard << guard_shift_;
    const TupleNumber number = (wide_ ? top << 64 : top) | common_ | (ref_tag_ & ref_tag_max_);
    ref_tag_ += ref_tag_step_;
    return number;
  }

 private:
  unsigned guard_shift_;
  bool wide_;
  std::uint64_t ref_tag_;
  std::uint64_t ref_tag_max_;
  std::uint64_t ref_tag_step_;
  TupleNumber common_;
};

void write_tuple(const PiFormat& format, Tuples& tuples, std::uint64_t data_guard,
                 std::byte* metadata) {
  const std::uint64_t guard = guard_metadata(format, metadata, data_guard);
  store_tuple(format, tuples.next(guard), metadata + format.pi_offset());
}

// The bits of a tuple that must be as expected.
TupleNumber compared_bits(const PiFormat& format, const Expectation& expected) {
  const auto all_if = [](bool checked) { return checked ? ~0ull : 0; };
  const PiChecks& checks = expected.checks;
  return number_of_guard(format, all_if(checks.guard)) |
         number_of_tags(format, checks.app_tag ? expected.tags.app_tag_mask : std::uint16_t{0},
                        checks.storage_tag ? format.storage_tag_mask() : 0,
                        all_if(checks.ref_tag && format.type() != PiType::type_3));
}

enum class Verdict { verified, unprotected, mismatched };

// For a tuple that is not the expected one bit by bit, which is the usual case.
[[gnu::noinline]] Verdict judge(const PiFormat& format, const Expectation& expected,
                                TupleNumber stored, TupleNumber computed) {
  if (is_escape(format, tuple_of(format, stored))) return Verdict::unprotected;
  const bool same = ((stored ^ computed) & compared_bits(format, expected)) == 0;
  return same ? Verdict::verified : Verdict::mismatched;
}

// Names the first tag in which a tuple differs in the bits that are compared.
PiMismatch mismatch_of(const PiFormat& format, const Expectation& expected, std::uint32_t index,
                       TupleNumber stored_number, TupleNumber computed_number) {
  const PiTuple stored = tuple_of(format, stored_number);
  const PiTuple computed = tuple_of(format, computed_number);
  const PiTuple differing =
      tuple_of(format, (stored_number ^ computed_number) & compared_bits(format, expected));
  const auto mismatch = [&](PiTag tag, std::uint64_t stored_tag, std::uint64_t computed_tag) {
    return PiMismatch{expected.first_lba + index, index, tag, stored_tag, computed_tag, stored};
  };
  if (differing.guard != 0) return mismatch(PiTag::guard, stored.guard, computed.guard);
  if (differing.app_tag != 0) return mismatch(PiTag::app_tag, stored.app_tag, computed.app_tag);
  if (differing.storage_tag != 0) {
    return mismatch(PiTag::storage_tag, stored.storage_tag, computed.storage_tag);
  }
  return mismatch(PiTag::ref_tag, stored.ref_tag, computed.ref_tag);
}

FailedBlock failed_block(const PiFormat& format, const Expectation& run, const DeviceWalk& block,
                         std::uint32_t index) {
  FailedBlock failed{.data = {block.data, format.data_size()},
                     .metadata = {block.metadata, format.metadata_size()},
                     .expected = run};
  failed.expected.first_lba += index;
  failed.expected.tags.initial_ref_tag = format.ref_tag_at(run.tags.initial_ref_tag, index);
  return failed;
}

void check_sizes([[maybe_unused]] const PiFormat& format, [[maybe_unused]] const Blocks& blocks,
                 [[maybe_unused]] const UserBlocks& user) {
  assert(user.data.size() == std::uint64_t{blocks.count} * format.data_size());
  assert(user.metadata.empty() ||
         user.metadata.size() == std::uint64_t{blocks.count} * format.metadata_size());
}

// Checks every block in turn. `guard_of_data(block)` yields the guard over its data (and may copy
// it on the way); `settle(block, i, good)` ends block i.
template <typename GuardOfData, typename Settle>
VerifyCounts verify_blocks(const PiFormat& format, const Expectation& expected,
                           const Blocks& blocks, MismatchSink on_mismatch,
                           GuardOfData guard_of_data, Settle settle) {
  Tuples tuples(format, expected.tags);
  const bool expects_escapes = expected.tags.app_tag == escape_app_tag;
  VerifyCounts counts;
  DeviceWalk block(format, blocks);
  for (std::uint32_t i = 0; i < blocks.count; ++i, block.next()) {
    std::uint64_t guard = guard_of_data(block);
    if (expected.checks.guard) guard = guard_metadata(format, block.metadata, guard);
    const TupleNumber stored = load_tuple(format, block.metadata + format.pi_offset());
    const TupleNumber computed = tuples.next(guard);
    const Verdict verdict = stored == computed && !expects_escapes
                                ? Verdict::verified
                                : judge(format, expected, stored, computed);
    counts.verified += verdict == Verdict::verified;
    counts.unprotected += verdict == Verdict::unprotected;
    counts.mismatched += verdict == Verdict::mismatched;
    settle(block, i, verdict != Verdict::mismatched);
    if (verdict != Verdict::mismatched) continue;
    if (!on_mismatch(mismatch_of(format, expected, i, stored, computed),
                     failed_block(format, expected, block, i))) {
      break;
    }
  }
  return counts;
}

// Without PI there is nothing to make ...
void copy_blocks_in(const PiFormat& format, const Blocks& target, const UserBlocks& source) {
  UserWalk data(source.data), metadata(source.metadata);
  DeviceWalk block(format, target);
  for (std::uint32_t i = 0; i < target.count; ++i, block.next()) {
    data.copy_in(block.data, format.data_size());
    if (!source.metadata.empty()) {
      metadata.copy_in(block.metadata, format.metadata_size());
    } else if (format.metadata_size() > 0) {
      std::memset(block.metadata, 0, format.metadata_size());
    }
  }
}

// ... and nothing to check.
VerifyCounts copy_blocks_out(const PiFormat& format, const Blocks& source,
                             const UserBlocks& target) {
  UserWalk data(target.data), metadata(target.metadata);
  DeviceWalk block(format, source);
  for (std::uint32_t i = 0; i < source.count; ++i, block.next()) {
    data.copy_out(block.data, format.data_size());
    if (!target.metadata.empty()) metadata.copy_out(block.metadata, format.metadata_size());
  }
  return {.unprotected = source.count};
}

}  // namespace

void protect(const PiFormat& format, const PiTags& tags, const Blocks& target,
             const UserBlocks& source) noexcept {
  check_sizes(format, target, source);
  if (!format.has_pi()) return copy_blocks_in(format, target, source);

  const auto copy_and_guard = chosen_guard_functions(format.guard()).copy_and_guard;
  const bool only_pi = format.metadata_size() == format.pi_size();  // which is overwritten anyway
  Tuples tuples(format, tags);
  UserWalk data(source.data), metadata(source.metadata);
  DeviceWalk block(format, target);
  for (std::uint32_t i = 0; i < target.count; ++i, block.next()) {
    const std::uint64_t guard =
        copy_in_and_guard(copy_and_guard, block.data, data, format.data_size());
    if (!only_pi && !source.metadata.empty()) {
      metadata.copy_in(block.metadata, format.metadata_size());
    } else if (!only_pi) {
      std::memset(block.metadata, 0, format.metadata_size());
    }
    write_tuple(format, tuples, guard, block.metadata);
  }
}

void generate(const PiFormat& format, const PiTags& tags, const Blocks& blocks) noexcept {
  assert(format.has_pi());
  Tuples tuples(format, tags);
  DeviceWalk block(format, blocks);
  for (std::uint32_t i = 0; i < blocks.count; ++i, block.next()) {
    const std::uint64_t data_guard = guard(format.guard(), {block.data, format.data_size()});
    write_tuple(format, tuples, data_guard, block.metadata);
  }
}

VerifyCounts verify(const PiFormat& format, const Expectation& expected, const Blocks& blocks,
                    MismatchSink on_mismatch) noexcept {
  if (!format.has_pi()) return {.unprotected = blocks.count};
  const auto guard_of_data = [&](const DeviceWalk& block) -> std::uint64_t {
    if (!expected.checks.guard) return 0;
    return guard(format.guard(), {block.data, format.data_size()});
  };
  return verify_blocks(format, expected, blocks, on_mismatch, guard_of_data,
                       [](const DeviceWalk&, std::uint32_t, bool) {});
}

VerifyCounts verify_and_copy(const PiFormat& format, const Expectation& expected,
                             const Blocks& source, const UserBlocks& target,
                             MismatchSink on_mismatch) noexcept {
  check_sizes(format, source, target);
  if (!format.has_pi()) return copy_blocks_out(format, source, target);

  const auto guard_and_copy = chosen_guard_functions(format.guard()).guard_and_copy;
  UserWalk data(target.data), metadata(target.metadata);
  // Each block is copied while it is guarded, in one pass; if it fails, the copy is erased again.
  const auto guard_of_data = [&](const DeviceWalk& block) -> std::uint64_t {
    if (expected.checks.guard) {
      return copy_out_and_guard(guard_and_copy, data, block.data, format.data_size());
    }
    data.copy_out(block.data, format.data_size());
    return 0;
  };
  const auto settle = [&](const DeviceWalk& block, std::uint32_t i, bool good) {
    if (!good) erase_block(target.data, i, format.data_size());
    if (target.metadata.empty()) return;
    if (good) {
      metadata.copy_out(block.metadata, format.metadata_size());
    } else {
      metadata.erase(format.metadata_size());
    }
  };
  return verify_blocks(format, expected, source, on_mismatch, guard_of_data, settle);
}

}  // namespace nvpi
