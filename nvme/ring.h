// The transport to a real device: io_uring passthrough (NVME_URING_CMD_IO) on a generic node.
//
// The ring has 128-byte entries and 32-byte completions, without which the kernel answers EOPNOTSUPP. The
// node is a registered file. Completions carry the NVMe status, or -errno if the command did not complete.
//
// Threads: the ring may be made by one thread and used by another; with RingOptions::single_issuer that is
// from the first command on the only one.
#pragma once

#include <memory>
#include <string>

#include "nvme/generic_node.h"
#include "nvme/transport.h"

namespace nvpi {

// What a kernel does not have is left out; Transport::fallbacks says so.
struct RingOptions {
  // One thread only submits and reaps: completions are then worked off when it reaps (DEFER_TASKRUN) and do
  // not interrupt it. Kernel 6.1.
  bool single_issuer = true;
  // Waiting for completions polls the device. Kernel 6.1 and the module parameter nvme.poll_queues; see
  // Namespace::open for a device that has none.
  bool io_poll = false;
  // A thread of the kernel takes the submissions, at the price of a processor.
  bool sq_poll = false;
};

class Ring final : public Transport {
 public:
  static Result<std::unique_ptr<Ring>> open(const std::string& path, std::uint32_t capacity,
                                            const RingOptions& options = {});
  ~Ring() override;

  std::uint32_t nsid() const override { return node_.nsid(); }
  Result<IdentifyPage> identify(Cns cns) override { return node_.identify(cns); }
  std::optional<std::uint64_t> transfer_limit() const override { return node_.transfer_limit(); }
  bool register_buffers(std::span<const iovec> buffers) override;
  bool read_only() const override { return node_.read_only(); }
  Fallbacks fallbacks() const override { return fallbacks_; }
  Result<std::unique_ptr<Transport>> another() override;

  std::uint32_t capacity() const override { return capacity_; }
  Result<void> submit(const Command& command, std::uint64_t user_data) override;
  Result<void> flush() override;
  Result<std::uint32_t> reap(std::span<Completion> completions,
                             std::chrono::milliseconds timeout) override;

 private:
  Ring(GenericNode node, std::uint32_t capacity, const RingOptions& options);
  static Result<std::unique_ptr<Ring>> open(GenericNode node, std::uint32_t capacity,
                                            const RingOptions& options);
  int set_up();
  int enable();
  int submit_and_wait(std::chrono::milliseconds timeout);
  int submit_and_poll(std::chrono::milliseconds timeout);

  GenericNode node_;
  std::uint32_t capacity_;
  RingOptions options_;
  Fallbacks fallbacks_;
  bool enabled_ = false;
  struct Uring;  // liburing stays out of the headers
  std::unique_ptr<Uring> uring_;
};

}  // namespace nvpi
