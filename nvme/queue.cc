#include "nvme/queue.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>

namespace nvpi {
namespace {

constexpr std::uint64_t default_slot_size_limit = 1u << 20;
constexpr unsigned attempt_limit = 8;
constexpr std::uint64_t benign_mismatch_limit = 3;  // then lazy reads bounce
constexpr std::chrono::seconds drain_time{5};

std::uint64_t slot_size_of(const Geometry& geometry, const QueueOptions& options) {
  const std::uint64_t wanted = options.slot_size != 0 ? options.slot_size : default_slot_size_limit;
  const std::uint64_t largest = std::max(max_blocks_per_command(geometry, PiOwner::host),
                                         max_blocks_per_command(geometry, PiOwner::device)) *
                                geometry.format.data_stride();
  // At least a block, or the queue could do nothing.
  return std::max<std::uint64_t>(std::min(wanted, largest), geometry.format.data_stride());
}

// Worth another try from the same slot: the kernel was short of something, or a path failed while another
// may work. A PI or media error never is: it says something about the data.
bool is_passing(const Completion& completion) {
  if (completion.result < 0) return completion.result == -EAGAIN;
  const Status status = completion.status();
  return status.is_path_error() && !status.dnr();
}

// The kernel does not take this registered buffer: kernels up to 6.7 refuse one of more pages than a
// request may have segments, and others are limited in other ways.
bool refuses_fixed_buffer(const Completion& completion) {
  return completion.result == -EINVAL || completion.result == -EOPNOTSUPP ||
         completion.result == -ENOMEM || completion.result == -EFAULT;
}

}  // namespace

Result<std::unique_ptr<Queue>> Queue::create(Transport& transport, const Geometry& geometry,
                                             const QueueOptions& options) {
  const std::uint32_t depth = std::min(options.depth, transport.capacity());
  assert(depth > 0);
  const std::uint64_t slot_size = slot_size_of(geometry, options);
  const std::uint64_t slot_blocks = slot_size / geometry.format.data_size();
  auto pool = BouncePool::create({.slot_count = depth,
                                  .data_size = slot_size,
                                  .metadata_size = slot_blocks * geometry.format.metadata_size(),
                                  .huge_pages = options.huge_pages});
  if (!pool) return fail({.code = Errc::os, .os_errno = pool.error()});
  std::unique_ptr<Queue> queue(new Queue(transport, geometry, depth, std::move(*pool)));
  if (queue->pool_->backing() == BouncePool::Backing::small_pages && options.huge_pages) {
    queue->fallbacks_.set(static_cast<std::size_t>(Fallback::huge_pages));
  }
  if (options.fixed_buffers) {
    std::vector<iovec> areas;
    for (std::uint32_t i = 0; i < depth; ++i) areas.push_back(queue->pool_->data_area(i));
    queue->fixed_buffers_ = transport.register_buffers(areas);
    queue->fallbacks_.set(static_cast<std::size_t>(Fallback::fixed_buffers), !queue->fixed_buffers_);
  }
  return queue;
}

Queue::Queue(Transport& transport, const Geometry& geometry, std::uint32_t depth,
             std::unique_ptr<BouncePool> pool)
    : transport_(transport),
      geometry_(geometry),
      formats_(geometry.format),
      depth_(depth),
      pool_(std::move(pool)),
      entries_(depth),
      completions_(depth) {
  const std::uint64_t slot_size = pool_->data_area(0).iov_len;
  for (const PiOwner pi : {PiOwner::host, PiOwner::device, PiOwner::caller}) {
    const PiFormat& transferred = formats_.of({.pi = pi});
    std::uint64_t& limit = max_blocks_[static_cast<std::size_t>(pi)];
    limit = std::min(max_blocks_per_command(geometry_, pi), slot_size / transferred.data_stride());
    // A slot has metadata for as many blocks as it would have data for without.
    if (geometry.format.metadata_size() > 0) limit = std::min(limit, slot_size / geometry.format.data_size());
  }
  free_entries_.reserve(depth);
  for (std::uint32_t i = depth; i-- > 0;) free_entries_.push_back(i);
}

Queue::~Queue() {
  const auto deadline = std::chrono::steady_clock::now() + drain_time;
  while (in_flight_ > 0 && std::chrono::steady_clock::now() < deadline) {
    const auto reaped = reap([](const IoDone&) {}, std::chrono::milliseconds(100));
    if (!reaped) break;
  }
  give_up();
}

void Queue::give_up() {
  if (in_flight_ == 0) return;
  broken_ = true;
  for (InFlight& entry : entries_) entry.slot.abandon();
  in_flight_ = 0;
}

std::uint64_t Queue::max_blocks(PiOwner pi, Opcode opcode) const {
  if (!transfers_blocks(traits_of(opcode))) return max_blocks_per_command(geometry_, pi, opcode);
  if (opcode == Opcode::compare && pi == PiOwner::device) pi = PiOwner::host;  // a compare has no PRACT
  return max_blocks_[static_cast<std::size_t>(pi)];
}

Result<InFlight*> Queue::take_entry() {
  if (!has_room()) return fail({.code = Errc::no_slot});
  BounceBuffer slot = pool_->acquire();
  if (!slot) return fail({.code = Errc::no_slot});
  InFlight& entry = entries_[free_entries_.back()];
  entry.slot = std::move(slot);
  entry.attempts = 1;
  entry.was_read_again = false;
  return &entry;
}

Result<void> Queue::submit(const Io& io) {
  if (const auto checked = check_io(io, geometry_); !checked) return checked;
  if (const std::uint64_t limit = max_blocks(io.pi, io.opcode); io.block_count > limit) {
    return fail({.code = Errc::wrong_length, .field = "block count", .value = io.block_count, .limit = limit});
  }
  const auto taken = take_entry();
  if (!taken) return fail(taken.error());
  InFlight& entry = **taken;
  entry.io = io;
  entry.command = command_of(io, geometry_);
  if (io.mode == TransferMode::lazy && benign_mismatches_ >= benign_mismatch_limit) {
    entry.io.mode = TransferMode::bounce;
  }
  entry.transferred = &formats_.of(io);
  entry.strategy = &strategy_of(entry.io, geometry_.format);
  return start(entry, Lengths::checked);
}

Result<void> Queue::submit(const Command& command, const UserBlocks& memory, std::uint64_t cookie,
                           Lengths lengths) {
  const auto fits = [](std::string_view field, const UserMemory& bytes, std::size_t limit) -> Result<void> {
    if (bytes.size() <= limit) return {};
    return fail({.code = Errc::wrong_length, .field = field, .value = bytes.size(), .limit = limit});
  };
  const auto taken = take_entry();
  if (!taken) return fail(taken.error());
  InFlight& entry = **taken;
  const auto fitting = fits("data", memory.data, entry.slot.data().size()).and_then([&] {
    return fits("metadata", memory.metadata, entry.slot.metadata().size());
  });
  if (!fitting) {
    entry.slot.release();
    return fitting;
  }
  entry.io = {.opcode = command.opcode, .slba = command.slba(), .memory = memory, .cookie = cookie};
  entry.command = command;
  entry.command.data_len = static_cast<std::uint32_t>(memory.data.size());
  entry.command.metadata_len = static_cast<std::uint32_t>(memory.metadata.size());
  entry.strategy = &passthrough_strategy();
  return start(entry, lengths);
}

void Queue::prepare(InFlight& entry) {
  entry.strategy->prepare(entry, geometry_.format);
  const bool in_slot = entry.command.data != nullptr && entry.command.data == entry.slot.data().data();
  entry.command.fixed_buffer = fixed_buffers_ && in_slot ? static_cast<std::int32_t>(entry.slot.index()) : -1;
}

Result<void> Queue::start(InFlight& entry, Lengths lengths) {
  prepare(entry);
  Result<void> submitted;
  if (lengths == Lengths::checked) {
    submitted = check_command(entry.command, geometry_.format, geometry_.block_count);
  }
  if (submitted) submitted = transport_.submit(entry.command, free_entries_.back());
  if (!submitted) {
    entry.slot.release();
    return submitted;
  }
  free_entries_.pop_back();
  ++in_flight_;
  return {};
}

bool Queue::send_again(InFlight& entry, std::uint32_t index, const Completion& completion) {
  if (entry.command.fixed_buffer >= 0 && refuses_fixed_buffer(completion)) {
    fixed_buffers_ = false;
    fallbacks_.set(static_cast<std::size_t>(Fallback::fixed_buffers));
    entry.command.fixed_buffer = -1;
    ++entry.attempts;
    return transport_.submit(entry.command, index).has_value();
  }
  if (!is_passing(completion) || entry.attempts >= attempt_limit) return false;
  ++entry.attempts;
  return transport_.submit(entry.command, index).has_value();
}

// A lazy read that did not verify goes through a slot. Whoever wrote to the caller's memory meanwhile cannot
// reach that, so the second result is the true one.
bool Queue::read_again(InFlight& entry, std::uint32_t index, Result<VerifyCounts>& outcome) {
  const TransferStrategy* const second = entry.strategy->second_try();
  const bool mismatched = !outcome && outcome.error().code == Errc::pi_mismatch;
  if (second != nullptr && mismatched) {
    entry.strategy = second;
    entry.was_read_again = true;
    prepare(entry);
    const auto submitted = transport_.submit(entry.command, index);
    if (!submitted) outcome = fail(submitted.error());  // the mismatch was not proven
    return submitted.has_value();
  }
  if (entry.was_read_again && outcome) ++benign_mismatches_;
  return false;
}

bool Queue::complete(const Completion& completion, IoDone& done) {
  assert(completion.user_data < entries_.size());
  const auto index = static_cast<std::uint32_t>(completion.user_data);
  InFlight& entry = entries_[index];
  if (!entry.slot) return false;  // given up: too late for anybody to care
  if (send_again(entry, index, completion)) return false;
  auto outcome = outcome_of(entry, completion);
  if (read_again(entry, index, outcome)) return false;
  done.cookie = entry.io.cookie;
  done.slba = entry.io.slba;
  done.block_count = static_cast<std::uint32_t>(entry.io.block_count);
  done.dwords = completion.dwords;
  done.outcome = std::move(outcome);
  entry.slot.release();
  free_entries_.push_back(index);
  --in_flight_;
  return true;
}

Result<VerifyCounts> Queue::outcome_of(InFlight& entry, const Completion& completion) {
  const auto failed = [&](Errc code) {
    return Error{.code = code,
                 .os_errno = completion.result < 0 ? -completion.result : 0,
                 .status = completion.result < 0 ? status::success : completion.status(),
                 .slba = entry.io.slba,
                 .block_count = static_cast<std::uint32_t>(entry.io.block_count)};
  };
  if (completion.result < 0 || !completion.status().ok()) {
    entry.strategy->discard(entry);
    return fail(failed(completion.result < 0 ? Errc::os : Errc::status));
  }

  std::optional<PiMismatch> first;
  const auto keep_first = [&](const PiMismatch& mismatch, const FailedBlock& block) {
    if (!first) first = mismatch;
    return entry.io.on_mismatch(mismatch, block);
  };
  const VerifyCounts counts = entry.strategy->deliver(entry, geometry_.format, keep_first);
  if (counts.mismatched == 0) return counts;
  Error error = failed(Errc::pi_mismatch);
  error.mismatch = first.value_or(PiMismatch{});
  error.mismatch_count = counts.mismatched;
  return fail(std::move(error));
}

}  // namespace nvpi
