// An opened NVMe generic character device, /dev/ngXnY.
//
// The namespace identifier and the geometry come from the device, never from the name: from kernel 6.12 on
// the Y of ngXnY is not the NSID. Only the kernel's transfer limit is looked up under the name of the
// sibling block device, for want of another place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nvme/error.h"
#include "nvme/identify.h"

namespace nvpi {

class GenericNode {
 public:
  // Opens for reading and writing, or for reading if that is all that is permitted.
  static Result<GenericNode> open(const std::string& path);

  GenericNode(GenericNode&& other) noexcept;
  GenericNode& operator=(GenericNode&&) = delete;
  ~GenericNode();

  // The same node once more.
  Result<GenericNode> duplicate() const;

  int fd() const { return fd_; }
  std::uint32_t nsid() const { return nsid_; }
  bool read_only() const { return read_only_; }
  Result<IdentifyPage> identify(Cns cns) const;
  // The most data bytes that the kernel takes in one passthrough command: the queue's max_hw_sectors, and
  // its segments at a page each. Nothing if the queue is not to be found.
  std::optional<std::uint64_t> transfer_limit() const;

 private:
  GenericNode(int fd, std::uint32_t nsid, bool read_only)
      : fd_(fd), nsid_(nsid), read_only_(read_only) {}
  int fd_;
  std::uint32_t nsid_;
  bool read_only_;
};

}  // namespace nvpi
