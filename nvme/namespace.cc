#include "nvme/namespace.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>
#include <vector>

#include "nvme/emulated_namespace.h"
#include "nvme/ring.h"

namespace nvpi {
namespace {

constexpr std::string_view emulated_prefix = "emu:";
// Without knowing the kernel's limit: what every queue takes.
constexpr std::uint64_t cautious_transfer_limit = 128u << 10;
constexpr std::chrono::seconds polling_deadline{1};

Result<std::unique_ptr<Transport>> open_transport(const std::string& device, std::uint32_t depth,
                                                   const RingOptions& ring_options) {
  if (device.starts_with(emulated_prefix)) {
    return EmulatedNamespace::parse(std::string_view(device).substr(emulated_prefix.size()))
        .and_then([&](EmulatedNamespace::Options options) {
          options.capacity = depth;
          return EmulatedNamespace::create(options);
        })
        .map([](std::unique_ptr<EmulatedNamespace> ns) -> std::unique_ptr<Transport> { return ns; });
  }
  return Ring::open(device, depth, ring_options).map([](std::unique_ptr<Ring> ring) -> std::unique_ptr<Transport> {
    return ring;
  });
}

// Collects the outcomes of the commands of one transfer: the failure with the lowest LBA, counts in all.
class Summary {
 public:
  explicit Summary(std::uint64_t slba) : slba_(slba) {}
  void add(const IoDone& done) {
    if (done.outcome) {
      counts_ += *done.outcome;
      return;
    }
    const Error& error = done.outcome.error();
    mismatch_count_ += error.mismatch_count;
    if (error.code != Errc::pi_mismatch) commands_failed_ = true;
    // A command that failed outweighs blocks that did not match: the data is not even there.
    const bool outweighs = !error_ || (error.code != Errc::pi_mismatch) > (error_->code != Errc::pi_mismatch);
    const bool same_kind = error_ && (error.code == Errc::pi_mismatch) == (error_->code == Errc::pi_mismatch);
    if (outweighs || (same_kind && error.slba < error_->slba)) error_ = error;
  }
  bool commands_failed() const { return commands_failed_; }

  Result<VerifyCounts> result() && {
    if (!error_) return counts_;
    error_->mismatch_count = mismatch_count_;
    error_->mismatch.block_index = static_cast<std::uint32_t>(error_->mismatch.lba - slba_);
    return fail(std::move(*error_));
  }

 private:
  std::uint64_t slba_;  // of the whole
  VerifyCounts counts_;
  std::uint64_t mismatch_count_ = 0;
  std::optional<Error> error_;
  bool commands_failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Namespace>> Namespace::open(const std::string& device, const OpenOptions& options) {
  const auto open_with = [&](const RingOptions& ring) {
    return open_transport(device, options.queue.depth, ring)
        .and_then([&](std::unique_ptr<Transport> transport) { return open(std::move(transport), options); });
  };
  auto ns = open_with(options.ring);
  if (!ns || !options.ring.io_poll || (*ns)->answers(polling_deadline)) return ns;
  RingOptions interrupted = options.ring;
  interrupted.io_poll = false;
  ns = open_with(interrupted);
  if (ns) (*ns)->fallbacks_.set(static_cast<std::size_t>(Fallback::io_poll));
  return ns;
}

Result<std::unique_ptr<Namespace>> Namespace::open(std::unique_ptr<Transport> transport,
                                                   const OpenOptions& options) {
  const auto controller_page = transport->identify(Cns::identify_controller);
  if (!controller_page) return fail(controller_page.error());
  const auto page = transport->identify(Cns::identify_namespace);
  if (!page) return fail(page.error());
  // Devices before NVMe 2.0 do not have this page; only a status says so, an errno is trouble.
  const auto extension = transport->identify(Cns::identify_namespace_csi);
  if (!extension && extension.error().code != Errc::status) return fail(extension.error());

  NamespaceInfo info = decode_namespace(transport->nsid(), *page, extension ? &*extension : nullptr);
  ControllerInfo controller = decode_controller(*controller_page);
  const auto format = format_of(info);
  if (!format) return fail(format.error());
  const auto transfer_limit = transport->transfer_limit();
  const Geometry geometry{.format = *format,
                          .nsid = transport->nsid(),
                          .block_count = info.nsze,
                          .max_transfer_size = controller.max_transfer_size(),
                          .mdts_excludes_metadata = controller.mdts_excludes_metadata(),
                          .transfer_limit = transfer_limit.value_or(cautious_transfer_limit)};
  if (max_blocks_per_command(geometry, PiOwner::host) == 0) {
    return fail({.code = Errc::unsupported_format,
                 .field = "data and metadata of a block",
                 .rule = "a command must be able to carry one block",
                 .value = format->data_stride()});
  }
  std::unique_ptr<Namespace> ns(new Namespace(std::move(transport), std::move(info), std::move(controller),
                                              geometry, options.patience));
  ns->fallbacks_ = ns->transport_->fallbacks();
  const auto note = [&](Fallback fallback, bool happened) {
    ns->fallbacks_.set(static_cast<std::size_t>(fallback), happened);
  };
  note(Fallback::io_command_set_id, !extension);
  note(Fallback::kernel_limits, !transfer_limit);
  note(Fallback::write_access, ns->transport_->read_only());
  auto queue = Queue::create(*ns->transport_, geometry, options.queue);
  if (!queue) return fail(queue.error());
  ns->queue_ = std::move(*queue);
  return ns;
}

Namespace::Namespace(std::unique_ptr<Transport> transport, NamespaceInfo info, ControllerInfo controller,
                     Geometry geometry, std::chrono::milliseconds patience)
    : transport_(std::move(transport)),
      info_(std::move(info)),
      controller_(std::move(controller)),
      geometry_(geometry),
      patience_(patience) {}

Result<std::unique_ptr<Namespace>> Namespace::another(const QueueOptions& options) const {
  auto transport = transport_->another();
  if (!transport) return fail(transport.error());
  std::unique_ptr<Namespace> ns(new Namespace(std::move(*transport), info_, controller_, geometry_, patience_));
  ns->fallbacks_ = fallbacks_;
  auto queue = Queue::create(*ns->transport_, geometry_, options);
  if (!queue) return fail(queue.error());
  ns->queue_ = std::move(*queue);
  return ns;
}

// Whether a command comes back at all, however it fared. Polled ones may not, where nobody polls.
bool Namespace::answers(std::chrono::milliseconds deadline) {
  std::vector<std::byte> block(geometry_.format.data_size());
  const Io first{.block_count = 1, .memory = {UserMemory(block), {}}, .device_checks = PiChecks::none()};
  bool carried_out = false;
  const auto take = [&](const IoDone& done) {
    carried_out = done.outcome || done.outcome.error().code != Errc::os;
  };
  const auto reaped = queue_->submit(first).and_then([&] { return queue_->reap(take, deadline); });
  if (!reaped || *reaped == 0) queue_->give_up();
  return carried_out;
}

// Of the one command in flight: DW0 and DW1 of its completion.
Result<std::uint64_t> Namespace::wait_for_one() {
  Result<std::uint64_t> result = 0;
  const auto take = [&](const IoDone& done) {
    result = done.outcome ? Result<std::uint64_t>(done.dwords) : fail(done.outcome.error());
  };
  while (queue_->in_flight() > 0) {
    const auto reaped = queue_->reap(take, patience_);
    if (!reaped || *reaped == 0) {
      queue_->give_up();
      return fail(reaped ? Error{.code = Errc::timed_out} : reaped.error());
    }
  }
  return result;
}

Result<std::uint64_t> Namespace::passthrough(const Command& command, const UserBlocks& memory,
                                             Queue::Lengths lengths) {
  return queue_->submit(command, memory, 0, lengths).and_then([&] { return wait_for_one(); });
}

Result<void> Namespace::flush() {
  return passthrough({.opcode = Opcode::flush, .nsid = geometry_.nsid}, {}).map([](std::uint64_t) {});
}

Result<void> Namespace::deallocate(std::span<const BlockRange> ranges) {
  std::vector<BlockRange> batch;
  const auto send = [&]() -> Result<void> {
    if (batch.empty()) return {};
    const RangeCommand made = make_deallocate(geometry_.nsid, batch);
    batch.clear();
    return passthrough(made.command, {UserMemory::read_only(made.payload), {}}).map([](std::uint64_t) {});
  };
  for (const BlockRange& range : ranges) {
    if (range.slba >= block_count() || range.block_count > block_count() - range.slba) {
      return fail({.code = Errc::out_of_range,
                   .value = range.slba + range.block_count - 1,
                   .limit = block_count() - 1,
                   .slba = range.slba});
    }
  }
  const std::size_t batch_limit =
      std::min(ranges_per_command, queue_->pool().data_area(0).iov_len / dsm_range_size);
  for (BlockRange range : ranges) {
    while (range.block_count > 0) {
      const std::uint64_t count = std::min(range.block_count, blocks_per_dsm_range);
      batch.push_back({range.slba, count});
      range = {range.slba + count, range.block_count - count};
      if (batch.size() < batch_limit) continue;
      if (const auto sent = send(); !sent) return sent;
    }
  }
  return send();
}

Result<void> Namespace::copy(const CopyRequest& request) {
  if (request.ranges.empty()) return fail({.code = Errc::no_blocks});
  if (request.ranges.size() > ranges_per_command) {
    return fail({.code = Errc::wrong_length,
                 .field = "number of source ranges",
                 .value = request.ranges.size(),
                 .limit = ranges_per_command});
  }
  const RangeCommand made = make_copy(geometry_.format, geometry_.nsid, request);
  return passthrough(made.command, {UserMemory::read_only(made.payload), {}}).map([](std::uint64_t) {});
}

Result<std::uint64_t> Namespace::zone_append(const Io& io) {
  assert(io.opcode == Opcode::zone_append);
  return queue_->submit(io).and_then([&] { return wait_for_one(); });
}

Result<VerifyCounts> Namespace::recheck(const Io& io, const Error& error) {
  assert(error.block_count > 0 && error.slba >= io.slba);
  const std::uint64_t first = error.slba - io.slba;
  std::vector<std::byte> scratch(std::size_t{error.block_count} * geometry_.format.data_size());
  Io again = io;
  again.opcode = Opcode::read;
  again.slba = error.slba;
  again.block_count = error.block_count;
  again.memory = {UserMemory(scratch), {}};
  again.mode = TransferMode::bounce;
  again.pi = PiOwner::host;
  again.checks = io.device_checks;  // the same that the device made
  again.device_checks = PiChecks::none();
  again.ref_tag = geometry_.format.ref_tag_at(tags_of(io, geometry_.format).initial_ref_tag, first);
  return transfer(again);
}

Result<VerifyCounts> Namespace::transfer(const Io& io) {
  if (const auto checked = check_io(io, geometry_); !checked) return fail(checked.error());
  if (queue_->is_broken()) return fail({.code = Errc::timed_out, .slba = io.slba});
  const std::uint64_t blocks_per_command = queue_->max_blocks(io.pi, io.opcode);
  Summary summary(io.slba);
  bool stopped = false;
  // A part counts its blocks from its own start; the caller counts from the start of the whole. Commands
  // in flight refer to this sink, so it outlives the loop.
  const auto whole_index = [&](const PiMismatch& mismatch, const FailedBlock& block) {
    PiMismatch whole = mismatch;
    whole.block_index = static_cast<std::uint32_t>(mismatch.lba - io.slba);
    stopped |= !io.on_mismatch(whole, block);
    return !stopped;
  };
  std::uint64_t next = 0;
  for (;;) {
    while (!stopped && !summary.commands_failed() && next < io.block_count && queue_->has_room()) {
      const std::uint64_t count = std::min(blocks_per_command, io.block_count - next);
      Io part = part_of(io, geometry_, next, count);
      part.on_mismatch = whole_index;
      if (const auto submitted = queue_->submit(part); !submitted) {
        summary.add({.slba = part.slba, .outcome = fail(submitted.error())});
        break;
      }
      next += count;
    }
    if (queue_->in_flight() == 0) break;
    const auto reaped = queue_->reap([&](const IoDone& done) { summary.add(done); }, patience_);
    if (!reaped || *reaped == 0) {
      queue_->give_up();
      return fail(reaped ? Error{.code = Errc::timed_out, .slba = io.slba} : reaped.error());
    }
  }
  return std::move(summary).result();
}

}  // namespace nvpi
