// The seam between the driver and a device: commands go in, completions come out.
//
// Two implementations: Ring (io_uring, the kernel, a real device) and EmulatedNamespace (in process). Both
// carry out what they are given; lengths, ranges and tags are checked above (command.h).
//
// Threads: a transport belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
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
};
inline constexpr unsigned fallback_count = 5;

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
