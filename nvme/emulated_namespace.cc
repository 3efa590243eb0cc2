#include "nvme/emulated_namespace.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace nvpi {
namespace {

// Little endian, as all of Identify.
void put(IdentifyPage& page, std::size_t offset, std::size_t size, std::uint64_t value) {
  for (std::size_t i = 0; i < size; ++i) page[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

tl::unexpected<Error> refuse(std::string_view key, std::string_view rule) {
  return fail({.code = Errc::bad_option, .rule = rule, .detail = std::string(key)});
}

Result<void> check_zones(const EmulatedNamespace::Options& options) {
  if (options.zone_size == 0) {
    return options.zone_capacity == 0 ? Result<void>{} : refuse("zone_capacity", "needs zone_size");
  }
  if (options.block_count % options.zone_size != 0) {
    return refuse("zone_size", "must divide the number of blocks of the namespace");
  }
  if (options.zone_capacity > options.zone_size) return refuse("zone_capacity", "must be at most zone_size");
  if (!options.file.empty()) return refuse("zone_size", "needs a namespace in memory, without file");
  return {};
}

}  // namespace

Result<std::unique_ptr<EmulatedNamespace>> EmulatedNamespace::create(const Options& options) {
  const auto format = PiFormat::create(options.format);
  if (!format) {
    return fail({.code = Errc::bad_option, .rule = format.error().rule, .value = format.error().value,
                 .detail = std::string(format.error().field)});
  }
  if (options.block_count == 0) {
    return refuse("size", "must be at least one block");
  }
  if (const auto zones = check_zones(options); !zones) return fail(zones.error());
  auto medium = options.file.empty() ? Medium::in_memory(*format, options.block_count)
                                     : Medium::in_file(options.file, *format, options.block_count);
  if (!medium) return fail(medium.error());
  return std::unique_ptr<EmulatedNamespace>(
      new EmulatedNamespace(std::make_shared<Shared>(options, std::move(*medium))));
}

EmulatedNamespace::Shared::Shared(const Options& given, std::unique_ptr<Medium> blocks)
    : options(given),
      medium(std::move(blocks)),
      faults(options.faults, medium->format()),
      zones(options.zone_size, options.zone_capacity != 0 ? options.zone_capacity : options.zone_size,
            medium->block_count()),
      channels(options.service) {}

EmulatedNamespace::EmulatedNamespace(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)),
      options_(shared_->options),
      medium_(shared_->medium.get()),
      faults_(shared_->faults),
      zones_(shared_->zones),
      completions_(options_.capacity),
      pending_(options_.capacity) {}

Result<std::unique_ptr<Transport>> EmulatedNamespace::another() {
  return std::unique_ptr<Transport>(new EmulatedNamespace(shared_));
}

Result<IdentifyPage> EmulatedNamespace::identify(Cns cns) {
  const std::lock_guard lock(shared_->mutex);
  if (faults_.device_is_gone()) return fail({.code = Errc::os, .os_errno = ENODEV});
  IdentifyNamespacePages pages = encode_namespace(medium_->format(), medium_->block_count());
  switch (cns) {
    case Cns::identify_namespace:
      put(pages.base, 24, 1, options_.dulbe ? 1u << 2 : 0);  // NSFEAT.DAE
      put(pages.base, 33, 1, options_.dlfeat);
      put(pages.base, 74, 2, options_.mssrl);
      put(pages.base, 76, 4, options_.mcl);
      put(pages.base, 80, 1, options_.msrc);
      put(pages.base, 99, 1, options_.write_protected ? 1 : 0);  // NSATTR
      return pages.base;
    case Cns::identify_namespace_csi:
      return pages.extension;
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
  {
    const std::lock_guard lock(shared_->mutex);
    if (faults_.device_is_gone()) return fail({.code = Errc::os, .os_errno = ENODEV});
  }
  const std::uint64_t in_flight = tail_ - head_ + completions_.in_flight();
  if (in_flight >= pending_.size()) return fail({.code = Errc::os, .os_errno = EAGAIN});
  const bool is_timed = shared_->channels.is_timed();
  pending_[tail_++ % pending_.size()] = {
      command, user_data, is_timed ? EmulatedClock::now() : EmulatedClock::time_point{}};
  return {};
}

Result<std::uint32_t> EmulatedNamespace::reap(std::span<Completion> completions,
                                              std::chrono::milliseconds timeout) {
  while (head_ != tail_ && !completions_.has_due(completions.size())) {
    carry_out(pending_[head_++ % pending_.size()]);
  }
  return completions_.take(completions, timeout);
}

void EmulatedNamespace::carry_out(const Pending& pending) {
  const std::lock_guard lock(shared_->mutex);
  const FaultInjector::Fate fate = faults_.next_fate();
  const Outcome outcome = fate.result ? Outcome{} : execute(pending.command);
  const Completion completion{.user_data = pending.user_data,
                              .result = fate.result.value_or(outcome.status.raw()),
                              .dwords = outcome.dwords};
  EmulatedClock::time_point due = shared_->channels.done_at(pending.command, pending.arrival);
  if (fate.delay.count() > 0) due = std::max(due, EmulatedClock::now()) + fate.delay;
  if (fate.dropped) {
    completions_.add_lost();
  } else if (fate.overtakes && completions_.waiting() > 0) {
    completions_.add_overtaking(completion, *fate.overtakes % completions_.waiting());
  } else {
    completions_.add(completion, due);
  }
}

}  // namespace nvpi
