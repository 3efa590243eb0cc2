// The two steps of an I/O in which the transfer modes differ. Internal to nvme/.
#pragma once

#include "bounce/bounce_pool.h"
#include "nvme/io.h"

namespace nvpi {

class TransferStrategy;

// A command between its submission and its completion.
struct InFlight {
  Io io;
  BounceBuffer slot;
  Command command;
  const PiFormat* transferred = nullptr;  // the layout in which the device transfers
  const TransferStrategy* strategy = nullptr;
  unsigned attempts = 0;
  bool was_read_again = false;
};

// A strategy has no state; one object serves every queue.
class TransferStrategy {
 public:
  // Points the command at its memory and makes what the device will fetch, if it fetches.
  virtual void prepare(InFlight& entry, const PiFormat& format) const noexcept = 0;
  // After a command that succeeded: verifies and delivers what the device wrote to memory. Nothing that fails its check is
  // left in the caller's memory.
  virtual VerifyCounts deliver(InFlight& entry, const PiFormat& format,
                               MismatchSink on_mismatch) const noexcept = 0;
  // After a command that failed: what it may have left in the caller's memory, unverified, goes.
  virtual void discard(InFlight&) const noexcept {}
  // How to transfer the same I/O again if deliver() found mismatches; null if they are final.
  virtual const TransferStrategy* second_try() const noexcept { return nullptr; }

 protected:
  ~TransferStrategy() = default;
};

// For an I/O on blocks, by its mode; of an opcode that transfers none, there is nothing to do.
const TransferStrategy& strategy_of(const Io& io, const PiFormat& format) noexcept;
// For a command that the driver does not look into: bytes through a slot.
const TransferStrategy& passthrough_strategy() noexcept;

}  // namespace nvpi
