#include "cli/describe.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "pi/tuple.h"

namespace nvpi::cli {
namespace {

unsigned bits_of(PiTag tag, const PiFormat& format) {
  switch (tag) {
    case PiTag::guard: return 8 * guard_size(format.guard());
    case PiTag::app_tag: return 16;
    case PiTag::storage_tag: return format.storage_tag_size();
    case PiTag::ref_tag: return format.ref_tag_size();
  }
  return 0;
}

std::string blocks_text(std::uint64_t slba, std::uint32_t count) {
  return count <= 1 ? fmt::format("LBA {}", slba) : fmt::format("LBA {}-{}", slba, slba + count - 1);
}

std::string describe_open(const Error& error) {
  const std::string& path = error.detail;
  switch (error.os_errno) {
    case ENOENT:
      if (!path.starts_with("/dev/")) return fmt::format("{} does not exist", path);
      return fmt::format("{} does not exist; `ls /dev/ng*` shows the namespaces of this machine", path);
    case EACCES:
    case EPERM:
      return fmt::format("{}: permission denied; run as root, or ask for access to the node", path);
    default: return fmt::format("{}: {}", path, std::strerror(error.os_errno));
  }
}

// The node that was meant instead of /dev/nvme0n1 or /dev/nvme0.
std::string generic_name(const std::string& path) {
  const std::size_t at = path.rfind("nvme");
  if (at == std::string::npos) return "/dev/ngXnY";
  const std::string rest = path.substr(at + 4);
  const std::size_t digits = rest.find_first_not_of("0123456789");
  if (digits == std::string::npos) return fmt::format("/dev/ng{}nY, for example /dev/ng{}n1", rest, rest);
  const std::string name = rest.substr(0, rest.find('p'));  // not the partition
  return "/dev/ng" + name;
}

std::string describe_os(const Error& error) {
  const std::string where =
      error.block_count > 0 ? " at " + blocks_text(error.slba, error.block_count) : std::string();
  switch (error.os_errno) {
    case EACCES:
    case EPERM:
      return fmt::format(
          "command{} not permitted: kernels before 6.2 want CAP_SYS_ADMIN for passthrough, later ones a "
          "node opened for writing; SELinux or /proc/sys/kernel/io_uring_disabled may also forbid it",
          where);
    case EINTR: return fmt::format("command{} cancelled by a controller reset or a time-out", where);
    case EINVAL:
      return fmt::format("command{} refused by the kernel (EINVAL): the device may be gone or resetting",
                         where);
    case ENODEV:
    case ENXIO: return fmt::format("command{} failed: the device is gone", where);
    default: return fmt::format("command{} failed: {}", where, std::strerror(error.os_errno));
  }
}

std::string describe_length(const Error& error) {
  return fmt::format("{} is {}, but must be exactly {}", error.field, error.value, error.limit);
}

}  // namespace

std::string_view name_of(PiTag tag) {
  constexpr std::string_view names[] = {"guard", "application tag", "storage tag", "reference tag"};
  return names[static_cast<unsigned>(tag)];
}

std::string_view name_of(GuardType guard) {
  constexpr std::string_view names[] = {"16b", "32b", "64b"};
  return names[static_cast<unsigned>(guard)];
}

std::string_view kind_of(const Error& error) {
  switch (exit_status_of(error)) {
    case ExitStatus::usage: return "usage";
    case ExitStatus::system: return "system";
    default: return error.code == Errc::pi_mismatch ? "pi" : "nvme";
  }
}

ExitStatus exit_status_of(const Error& error) {
  constexpr ExitStatus by_tag[] = {ExitStatus::guard, ExitStatus::app_tag, ExitStatus::storage_tag,
                                   ExitStatus::ref_tag};
  switch (error.code) {
    case Errc::pi_mismatch: return by_tag[static_cast<unsigned>(error.mismatch.tag)];
    case Errc::status:
      switch (error.status.code()) {
        case status::guard_check_error.code(): return ExitStatus::guard;
        case status::app_tag_check_error.code(): return ExitStatus::app_tag;
        case status::ref_tag_check_error.code(): return ExitStatus::ref_tag;
        case status::storage_tag_check_error.code(): return ExitStatus::storage_tag;
        case status::compare_failure.code(): return ExitStatus::compare_failure;
        default: return ExitStatus::nvme_status;
      }
    case Errc::open_failed:
    case Errc::bad_medium:
    case Errc::io_uring_unavailable:
    case Errc::no_slot:
    case Errc::timed_out:
    case Errc::os: return ExitStatus::system;
    default: return ExitStatus::usage;
  }
}

std::string describe_status(Status status) {
  const std::string_view name = status.name();
  return fmt::format("{} (0x{:03x}{})", name.empty() ? "status without a name" : name, status.code(),
                     status.dnr() ? ", do not retry" : "");
}

std::string describe(const Error& error) {
  switch (error.code) {
    case Errc::open_failed: return describe_open(error);
    case Errc::block_node:
      return fmt::format("{} is a block node; use {}", error.detail, generic_name(error.detail));
    case Errc::controller_node:
      return fmt::format("{} is a controller; use {}", error.detail, generic_name(error.detail));
    case Errc::not_nvme_node:
      return fmt::format("{} is no NVMe generic node; use /dev/ngXnY or emu:...", error.detail);
    case Errc::bad_option: return fmt::format("emu: {} {}", error.detail, error.rule);
    case Errc::bad_medium:
      return error.os_errno == 0
                 ? fmt::format("{} {}", error.detail, error.rule)
                 : fmt::format("{} {}: {}", error.detail, error.rule, std::strerror(error.os_errno));
    case Errc::unsupported_format:
      return fmt::format("the namespace's format cannot be used: {} is {}, but {}", error.field,
                         error.value, error.rule);
    case Errc::io_uring_unavailable:
      return fmt::format(
          "io_uring cannot be set up: {}; see /proc/sys/kernel/io_uring_disabled, `ulimit -l` and "
          "seccomp, and use kernel 5.19 or later",
          std::strerror(error.os_errno));
    case Errc::no_blocks: return "nothing to transfer: the block count is 0";
    case Errc::out_of_range:
      return fmt::format("LBA {} is outside the namespace, whose last LBA is {}", error.value, error.limit);
    case Errc::wrong_length: return describe_length(error);
    case Errc::tag_too_large:
      return fmt::format("{} 0x{:x} is too large: at most 0x{:x} in this format", error.field, error.value,
                         error.limit);
    case Errc::ref_tag_conflict:
      return fmt::format(
          "reference tag 0x{:x} contradicts the address: with PI type 1 it must be 0x{:x}, or leave it out",
          error.value, error.limit);
    case Errc::unprotecting_app_tag:
      return "application tag 0xffff would switch all checks of these blocks off; use "
             "--allow-unprotected if that is meant";
    case Errc::not_contiguous: return fmt::format("{} must lie in one piece for zero-copy", error.field);
    case Errc::unaligned:
      return fmt::format("{} must be aligned to {} bytes for zero-copy", error.field, error.limit);
    case Errc::no_slot: return "too many commands in flight";
    case Errc::timed_out:
      return fmt::format("no command completed for too long; gave up at LBA {}", error.slba);
    case Errc::os: return describe_os(error);
    case Errc::status:
      return error.block_count == 0
                 ? describe_status(error.status)
                 : fmt::format("{} at {}", describe_status(error.status),
                               blocks_text(error.slba, error.block_count));
    case Errc::pi_mismatch:
      return fmt::format("{} mismatch at LBA {}", name_of(error.mismatch.tag), error.mismatch.lba);
  }
  return "unknown error";
}

std::string tag_text(PiTag tag, std::uint64_t value, const PiFormat& format) {
  return fmt::format("0x{:0{}x}", value, (bits_of(tag, format) + 3) / 4);
}

std::string tuple_text(const PiTuple& tuple, const PiFormat& format) {
  std::array<std::byte, 16> bytes{};
  encode_tuple(format, tuple, bytes.data());
  const unsigned guard_bytes = guard_size(format.guard());
  std::string text;
  for (unsigned i = 0; i < format.pi_size(); ++i) {
    if (i == guard_bytes || i == guard_bytes + 2) text += ' ';
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

std::string describe(const PiMismatch& mismatch, const PiFormat& format, std::uint64_t data_stride) {
  return fmt::format("LBA {} (block {}, byte {}): {} stored {}, computed {}; tuple {}", mismatch.lba,
                     mismatch.block_index, mismatch.block_index * data_stride,
                     name_of(mismatch.tag), tag_text(mismatch.tag, mismatch.stored, format),
                     tag_text(mismatch.tag, mismatch.computed, format),
                     tuple_text(mismatch.tuple, format));
}

std::string describe(const Fallback& fallback) {
  switch (fallback) {
    case Fallback::huge_pages:
      return "no huge pages; bounce memory is in small pages (see /proc/sys/vm/nr_hugepages)";
    case Fallback::fixed_buffers:
      return "bounce memory is not registered with the kernel, which pins it for every command "
             "(see `ulimit -l`)";
    case Fallback::kernel_limits:
      return "the kernel's transfer limit is unknown; commands carry at most 128 KiB";
    case Fallback::write_access: return "the node is open for reading only";
    case Fallback::io_command_set_id:
      return "the device has no Identify page for its command set (CNS 05h); a 16b guard without storage "
             "tag is assumed";
    case Fallback::single_issuer:
      return "the kernel is older than 6.1; completions interrupt the thread (no DEFER_TASKRUN)";
    case Fallback::io_poll:
      return "no polled queues (see the module parameter nvme.poll_queues); completions come by interrupt";
    case Fallback::sq_poll:
      return "the kernel gives no thread for submissions (SQPOLL); each batch is a system call";
  }
  return {};
}

std::string describe(const PiFormat& format) {
  const std::string metadata =
      format.metadata_size() == 0
          ? std::string("no metadata")
          : fmt::format("{} bytes metadata, {}", format.metadata_size(),
                        format.extended() ? "extended (behind the data of each block)"
                                          : "separate (in a buffer of its own)");
  std::string text = fmt::format("{} bytes data, {}", format.data_size(), metadata);
  if (!format.has_pi()) return text + ", no protection information";
  text += fmt::format(", protection information type {} with {} guard in the {} {} bytes",
                      static_cast<unsigned>(format.type()), name_of(format.guard()),
                      format.position() == PiPosition::first ? "first" : "last", format.pi_size());
  if (format.storage_tag_size() > 0) {
    text += fmt::format(", storage tag of {} bits (mask 0x{:x})", format.storage_tag_size(),
                        format.storage_tag_mask());
  }
  return text + fmt::format(", reference tag of {} bits", format.ref_tag_size());
}

}  // namespace nvpi::cli
