// The transport to a real device: io_uring passthrough (NVME_URING_CMD_IO) on a generic node.
//
// The ring has 128-byte entries and 32-byte completions, without which the kernel answers EOPNOTSUPP. The
// node is a registered file. Completions carry the NVMe status, or -errno if the command did not complete.
#pragma once

#include <memory>
#include <string>

#include "nvme/generic_node.h"
#include "nvme/transport.h"

namespace nvpi {

class Ring final : public Transport {
 public:
  static Result<std::unique_ptr<Ring>> open(const std::string& path, std::uint32_t capacity);
  ~Ring() override;

  std::uint32_t nsid() const override { return node_.nsid(); }
  Result<IdentifyPage> identify(Cns cns) override { return node_.identify(cns); }
  std::optional<std::uint64_t> transfer_limit() const override { return node_.transfer_limit(); }
  bool register_buffers(std::span<const iovec> buffers) override;
  bool read_only() const override { return node_.read_only(); }

  std::uint32_t capacity() const override { return capacity_; }
  Result<void> submit(const Command& command, std::uint64_t user_data) override;
  Result<void> flush() override;
  Result<std::uint32_t> reap(std::span<Completion> completions,
                             std::chrono::milliseconds timeout) override;

 private:
  Ring(GenericNode node, std::uint32_t capacity);
  int set_up();

  GenericNode node_;
  std::uint32_t capacity_;
  struct Uring;  // liburing stays out of the headers
  std::unique_ptr<Uring> uring_;
};

}  // namespace nvpi
