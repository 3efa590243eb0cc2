// Emulated namespaces and plain buffers for tests of nvme/.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nvme/emulated_namespace.h"
#include "nvme/namespace.h"
#include "support/bytes.h"

namespace nvpi::test {

struct EmulatedOptions {
  std::uint64_t block_count = 4096;
  std::uint8_t mdts = 5;  // 128 KiB
  std::uint32_t capacity = 64;
  std::string file = {};
  std::function<void(const Command&)> on_transfer = {};
};

std::unique_ptr<EmulatedNamespace> make_emulated(const PiFormat& format,
                                                 const EmulatedOptions& options = {});

// A Namespace over an emulated one, and both within reach.
struct OpenedEmulated {
  EmulatedNamespace* device;  // owned by ns
  std::unique_ptr<Namespace> ns;
};
OpenedEmulated open_emulated(const PiFormat& format, const EmulatedOptions& options = {},
                             const QueueOptions& queue = {.depth = 8});

// Carries out one command as it is and returns its status code, without the DNR bit.
Status carry_out(Transport& transport, const Command& command);

// Nothing is in flight, and every slot of the queue is free.
void check_all_slots_are_back(Namespace& ns);

// Flips a bit of a block's data on the media, from outside: its guard does not fit any more.
void damage(EmulatedNamespace& device, std::uint64_t lba);

inline UserMemory memory_of(Bytes& bytes) {
  return UserMemory(std::span<std::byte>(bytes));
}

// Memory for zero-copy: `size` bytes at an address that is a multiple of 64, plus `shift`.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size, std::size_t shift = 0);
  std::span<std::byte> bytes() { return {begin_, size_}; }
  UserMemory memory() { return UserMemory(bytes()); }

 private:
  Bytes storage_;
  std::byte* begin_;
  std::size_t size_;
};

// A file name in a directory of its own, removed with it.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string directory_, path_;
};

}  // namespace nvpi::test
