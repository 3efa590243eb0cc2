// What can go wrong, as values. The library throws nothing across its API and prints nothing; whoever
// shows an error to a person words it (the tool does so in cli/).
//
// Data that is not what it should be is its own kind of trouble: Errc::pi_mismatch, with the first
// mismatch. Misuse that a caller could have known is an assertion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "nvme/status.h"
#include "pi/protect.h"

namespace nvpi {

enum class Errc : std::uint8_t {
  // Opening a device. `detail` is the path; `os_errno` where the system said why.
  open_failed,
  block_node,       // a block device: the caller wants /dev/ngXnY
  controller_node,  // a controller: the caller wants /dev/ngXnY
  not_nvme_node,    // neither
  bad_option,       // emu:...: `detail` is the key, `rule` what it must be
  bad_medium,       // emu:file=...: `detail` is the path, `rule` what is wrong with the file
  unsupported_format,  // the namespace's format: `field`, `value`, `rule`
  io_uring_unavailable,  // `os_errno`
  // A request refused before anything is sent: `field`, `value` and, where there is one, `limit`.
  no_blocks,
  out_of_range,
  wrong_length,
  tag_too_large,
  ref_tag_conflict,   // type 1: `limit` is the tag that the address demands
  unprotecting_app_tag,  // FFFFh would switch all checks off
  not_contiguous,
  unaligned,
  // While it ran.
  no_slot,    // back-pressure: reap first
  timed_out,  // commands are still in flight; their slots are not handed out again
  os,         // `os_errno`
  status,     // `status`, and the command's first LBA and block count
  pi_mismatch,
};

struct Error {
  Errc code = Errc::os;
  int os_errno = 0;
  Status status{};
  std::string_view field{};  // always a static string
  std::string_view rule{};   // always a static string
  std::uint64_t value = 0;
  std::uint64_t limit = 0;
  std::string detail{};
  std::uint64_t slba = 0;         // the command that failed
  std::uint32_t block_count = 0;  // 0 if no command is to blame
  PiMismatch mismatch{};          // the one with the lowest LBA
  std::uint64_t mismatch_count = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) { return tl::make_unexpected(std::move(error)); }

}  // namespace nvpi
