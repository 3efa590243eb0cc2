// The namespaces that the device tests run on: real ones in a guest under QEMU, where every
// namespace of the table in tests/vm is there, or else emulated namespaces of the same formats.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nvme/namespace.h"

namespace nvpi::test {

struct FormatRow {
  std::uint32_t nsid;  // in the guest
  PiFormat::Fields fields;
};

// The table of tests/vm/drives.py.
const std::vector<FormatRow>& format_table();

bool in_guest();
std::string qemu_version();  // empty outside a guest
std::string name_of(const FormatRow& row);

class Target {
 public:
  explicit Target(const FormatRow& row);
  ~Target();

  Namespace& ns() { return *ns_; }
  const PiFormat& format() const { return ns_->format(); }
  const PiFormat::Fields& wanted() const { return row_.fields; }  // what the table says
  const std::string& device() const { return device_; }

  // Sends a command as it is, past every check of the driver, and waits for its completion.
  Completion send(const Command& command);

  enum class Area : std::uint8_t { data, metadata };
  // Changes a byte on the medium behind the device's back.
  void flip(Area area, std::uint64_t lba, std::uint32_t offset, std::uint8_t bits);

 private:
  FormatRow row_;
  std::string device_;
  std::string image_;  // of the emulated namespace
  Transport* transport_ = nullptr;
  std::unique_ptr<Namespace> ns_;
};

// Path of the generic node of a namespace of this machine; empty if there is none.
std::string find_node(std::uint32_t nsid);

}  // namespace nvpi::test
