// The two steps of an I/O in which the transfer modes differ. Internal to nvme/.
#pragma once

#include "bounce/bounce_pool.h"
#include "nvme/io.h"

namespace nvpi {

// An I/O between its submission and its completion.
struct InFlight {
  Io io;
  BounceBuffer slot;
  Command command;
  unsigned attempts = 0;
};

// A strategy has no state; one object serves every queue.
class TransferStrategy {
 public:
  // Points the command at its memory and, for a write, makes what the device will fetch.
  virtual void prepare(InFlight& entry, const PiFormat& format) const noexcept = 0;
  // After a command that succeeded: for a read, verifies and delivers. Nothing that fails its check is
  // left in the caller's memory.
  virtual VerifyCounts deliver(InFlight& entry, const PiFormat& format,
                               MismatchSink on_mismatch) const noexcept = 0;

 protected:
  ~TransferStrategy() = default;
};

const TransferStrategy& strategy_of(TransferMode mode) noexcept;

}  // namespace nvpi
