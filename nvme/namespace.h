// A namespace: the front door of the driver.
//
//   auto ns = Namespace::open("/dev/ng0n1");
//   if (!ns) ...ns.error()...
//   (*ns)->transfer({.opcode = Opcode::write, .slba = 16, .block_count = 8, .memory = {UserMemory(buffer)}});
//
// Opening asks the device for its geometry and PI format. Reads and writes may be of any length; they are
// split to what the device and the kernel take and run at the queue's depth. They block.
//
// Threads: one thread at a time; see RingOptions::single_issuer. A further thread takes another().
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "nvme/identify.h"
#include "nvme/io.h"
#include "nvme/queue.h"
#include "nvme/ranges.h"
#include "nvme/ring.h"
#include "nvme/transport.h"

namespace nvpi {

struct OpenOptions {
  QueueOptions queue;
  RingOptions ring;  // of a real device
  // How long no command at all may complete before the queue is given up. The kernel has a time-out of its
  // own for each command, 30 s by default, after which it resets the controller.
  std::chrono::milliseconds patience{120'000};
};

class Namespace {
 public:
  // `device` is a generic node (/dev/ngXnY) or an emulated namespace (emu:key=value,...). With ring.io_poll
  // a first read finds out whether the device completes polled commands at all; if not, completions come by
  // interrupt.
  static Result<std::unique_ptr<Namespace>> open(const std::string& device,
                                                 const OpenOptions& options = {});
  static Result<std::unique_ptr<Namespace>> open(std::unique_ptr<Transport> transport,
                                                 const OpenOptions& options = {});

  // The same namespace with a transport and a queue of its own, for another thread. The device is asked
  // nothing again.
  Result<std::unique_ptr<Namespace>> another(const QueueOptions& options = {}) const;

  const NamespaceInfo& info() const { return info_; }
  const ControllerInfo& controller() const { return controller_; }
  const Geometry& geometry() const { return geometry_; }
  const PiFormat& format() const { return geometry_.format; }
  std::uint64_t block_count() const { return geometry_.block_count; }

  // Carries out an I/O of any length. Returns what the host verified (nothing but for a read).
  //
  // Errc::status or os: one command failed, named by slba and block_count; commands that were in flight
  // beside it may have been carried out, later ones were not sent. Errc::pi_mismatch: the read went
  // through, `mismatch` is the block with the lowest LBA; failing blocks read as zeros, the others are
  // delivered.
  Result<VerifyCounts> transfer(const Io& io);

  // One command each; they wait for it. Errors as above.
  Result<void> flush();
  Result<void> deallocate(std::span<const BlockRange> ranges);  // any number, of any length
  Result<void> copy(const CopyRequest& request);
  Result<std::uint64_t> zone_append(const Io& io);  // the LBA where the device put the blocks
  // A command as it is; see Queue::submit. Returns DW0 and DW1 of its completion.
  Result<std::uint64_t> passthrough(const Command& command, const UserBlocks& memory,
                                    Queue::Lengths lengths = Queue::Lengths::checked);

  // Who is right, when the device refuses a read with a PI error? Reads the blocks of the command that
  // failed (error.slba, error.block_count of a transfer of `io`) again with the device's checks off and
  // verifies them here; the caller's memory is not touched. Errc::pi_mismatch names the blocks, also to
  // io.on_mismatch; success means that the host finds nothing wrong.
  Result<VerifyCounts> recheck(const Io& io, const Error& error);

  Queue& queue() { return *queue_; }
  // What the driver has to do without.
  Fallbacks fallbacks() const { return fallbacks_ | queue_->fallbacks(); }

 private:
  Namespace(std::unique_ptr<Transport> transport, NamespaceInfo info, ControllerInfo controller,
            Geometry geometry, std::chrono::milliseconds patience);
  Result<std::uint64_t> wait_for_one();
  bool answers(std::chrono::milliseconds deadline);

  std::unique_ptr<Transport> transport_;
  NamespaceInfo info_;
  ControllerInfo controller_;
  Geometry geometry_;
  std::chrono::milliseconds patience_;
  Fallbacks fallbacks_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace nvpi
