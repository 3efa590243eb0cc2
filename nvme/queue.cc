#include "nvme/queue.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace nvpi {
namespace {

constexpr std::uint64_t default_slot_size_limit = 1u << 20;
constexpr unsigned attempt_limit = 8;
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
      depth_(depth),
      pool_(std::move(pool)),
      entries_(depth),
      completions_(depth) {
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
}

std::uint64_t Queue::max_blocks(PiOwner pi) const {
  const std::uint64_t slot_blocks =
      pool_->data_area(0).iov_len / transferred_format({.pi = pi}, geometry_.format).data_stride();
  const std::uint64_t metadata_size = geometry_.format.metadata_size();
  const std::uint64_t metadata_blocks = pool_->data_area(0).iov_len / geometry_.format.data_size();
  return std::min({max_blocks_per_command(geometry_, pi), slot_blocks,
                   metadata_size > 0 ? metadata_blocks : slot_blocks});
}

Result<void> Queue::submit(const Io& io) {
  if (!has_room()) return fail({.code = Errc::no_slot});
  if (const auto checked = check_io(io, geometry_); !checked) return checked;
  if (io.block_count > max_blocks(io.pi)) {
    return fail({.code = Errc::wrong_length,
                 .field = "block count",
                 .value = io.block_count,
                 .limit = max_blocks(io.pi)});
  }
  BounceBuffer slot = pool_->acquire();
  if (!slot) return fail({.code = Errc::no_slot});

  const std::uint32_t index = free_entries_.back();
  InFlight& entry = entries_[index];
  entry.io = io;
  entry.slot = std::move(slot);
  entry.attempts = 1;
  entry.command = command_of(io, geometry_);
  strategy_of(io.mode).prepare(entry, geometry_.format);
  if (fixed_buffers_ && entry.command.data == entry.slot.data().data()) {
    entry.command.fixed_buffer = static_cast<std::int32_t>(entry.slot.index());
  }
  const auto submitted = check_command(entry.command, geometry_.format, geometry_.block_count).and_then([&] {
    return transport_.submit(entry.command, index);
  });
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
    return transport_.submit(entry.command, index).has_value();
  }
  if (!is_passing(completion) || entry.attempts >= attempt_limit) return false;
  ++entry.attempts;
  return transport_.submit(entry.command, index).has_value();
}

bool Queue::complete(const Completion& completion, IoDone& done) {
  assert(completion.user_data < entries_.size());
  const auto index = static_cast<std::uint32_t>(completion.user_data);
  InFlight& entry = entries_[index];
  if (send_again(entry, index, completion)) return false;
  done.cookie = entry.io.cookie;
  done.slba = entry.io.slba;
  done.block_count = static_cast<std::uint32_t>(entry.io.block_count);
  done.outcome = outcome_of(entry, completion);
  entry.slot.release();
  free_entries_.push_back(index);
  --in_flight_;
  return true;
}

Result<VerifyCounts> Queue::outcome_of(InFlight& entry, const Completion& completion) {
  Error error{.slba = entry.io.slba, .block_count = static_cast<std::uint32_t>(entry.io.block_count)};
  if (completion.result < 0) {
    error.code = Errc::os;
    error.os_errno = -completion.result;
    return fail(std::move(error));
  }
  if (!completion.status().ok()) {
    error.code = Errc::status;
    error.status = completion.status();
    return fail(std::move(error));
  }
  const auto keep_first = [&](const PiMismatch& mismatch) {
    if (error.mismatch_count++ == 0) error.mismatch = mismatch;
    return entry.io.on_mismatch(mismatch);
  };
  const VerifyCounts counts = strategy_of(entry.io.mode).deliver(entry, geometry_.format, keep_first);
  if (counts.mismatched == 0) return counts;
  error.code = Errc::pi_mismatch;
  return fail(std::move(error));
}

}  // namespace nvpi
