#include "nvme/emulated_namespace.h"

#include <cerrno>
#include <utility>

namespace nvpi {
Result<std::unique_ptr<EmulatedNamespace>> EmulatedNamespace::create(const Options& options) {
  const auto format = PiFormat::create(options.format);
  if (!format) {
    return fail({.code = Errc::bad_option, .rule = format.error().rule, .value = format.error().value,
                 .detail = std::string(format.error().field)});
  }
  if (options.block_count == 0) {
    return fail({.code = Errc::bad_option, .rule = "must be at least one block", .detail = "size"});
  }
  auto medium = options.file.empty() ? Medium::in_memory(*format, options.block_count)
                                     : Medium::in_file(options.file, *format, options.block_count);
  if (!medium) return fail(medium.error());
  return std::unique_ptr<EmulatedNamespace>(new EmulatedNamespace(options, std::move(*medium)));
}

EmulatedNamespace::EmulatedNamespace(Options options, std::unique_ptr<Medium> medium)
    : options_(std::move(options)), medium_(std::move(medium)), pending_(options_.capacity) {}

Result<IdentifyPage> EmulatedNamespace::identify(Cns cns) {
  switch (cns) {
    case Cns::identify_namespace:
      return encode_namespace(medium_->format(), medium_->block_count()).base;
    case Cns::identify_namespace_csi:
      return encode_namespace(medium_->format(), medium_->block_count()).extension;
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
  if (tail_ - head_ == pending_.size()) return fail({.code = Errc::os, .os_errno = EAGAIN});
  pending_[tail_++ % pending_.size()] = {command, user_data};
  return {};
}

Result<std::uint32_t> EmulatedNamespace::reap(std::span<Completion> completions,
                                              std::chrono::milliseconds) {
  std::uint32_t count = 0;
  while (count < completions.size() && head_ != tail_) {
    const Pending& pending = pending_[head_++ % pending_.size()];
    const Outcome outcome = execute(pending.command);
    completions[count++] = {.user_data = pending.user_data,
                            .result = outcome.status.raw(),
                            .dwords = outcome.dwords};
  }
  return count;
}

}  // namespace nvpi
