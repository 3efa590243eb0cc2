// The seam between the driver and a device: commands go in, completions come out.
//
// Two implementations: Ring (io_uring, the kernel, a real device) and EmulatedNamespace (in process). Both
// carry out what they are given; lengths, ranges and tags are checked above (command.h).
//
// Threads: a transport belongs to one thread at a time.
#pragma once

#include <bitset>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <sys/uio.h>

#include "nvme/command.h"
#include "nvme/identify.h"

namespace nvpi {

// Something that was wanted but is not to be had; the work goes on without it. Integrity is never among
// them.
enum class Fallback : std::uint8_t {
  huge_pages,         // bounce memory is in small pages
  fixed_buffers,      // bounce memory is not registered, the kernel pins it for every command
  kernel_limits,      // the kernel's transfer limit is unknown, a cautious one is used
  write_access,       // the node could only be opened for reading
  io_command_set_id,  // the device has no CNS 05h page: 16b guard without storage tags is assumed
  single_issuer,      // the kernel is older than 6.1: completions interrupt the thread
  io_poll,            // the device or the kernel has no polled queues: completions come by interrupt
  sq_poll,            // no kernel thread takes the submissions: each batch is a system call
};
inline constexpr unsigned fallback_count = 8;
using Fallbacks = std::bitset<fallback_count>;

class Transport {
 public:
  virtual ~Transport() = default;

  // Setting up. These block.
  virtual std::uint32_t nsid() const = 0;
  virtual Result<IdentifyPage> identify(Cns cns) = 0;
  // What one command may carry on the way to the device, in bytes of data; 0 for no limit. Nothing if it
  // cannot be found out.
  virtual std::optional<std::uint64_t> transfer_limit() const = 0;
  // Offers memory for Command::fixed_buffer; false if it cannot be registered.
  virtual bool register_buffers(std::span<const iovec> buffers) = 0;
  virtual bool read_only() const = 0;
  // What it has to do without, of what it was asked for.
  virtual Fallbacks fallbacks() const { return {}; }
  // A further transport to the same namespace, for another thread. It outlives this one if need be.
  // EOPNOTSUPP if there can be only one.
  virtual Result<std::unique_ptr<Transport>> another() {
    return fail({.code = Errc::os, .os_errno = EOPNOTSUPP});
  }

  // Running. No allocation. At most capacity() commands are in flight.
  virtual std::uint32_t capacity() const = 0;
  // Queues a command; it is sent by the next reap or flush. Fails with EAGAIN if there is no room.
  virtual Result<void> submit(const Command& command, std::uint64_t user_data) = 0;
  // Sends what is queued.
  virtual Result<void> flush() = 0;
  // Sends what is queued and takes completions: waits until there is at least one, or until the timeout.
  // Returns how many it took: 0 after a timeout.
  virtual Result<std::uint32_t> reap(std::span<Completion> completions,
                                     std::chrono::milliseconds timeout) = 0;
};

}  // namespace nvpi
