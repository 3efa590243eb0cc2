// Memory to run the library on, whose edges are watched.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <vector>

#include "pi/protect.h"
#include "support/bytes.h"

namespace nvpi::test {

// Device blocks in the layout of a format. Exactly as long as they must be, so that
// AddressSanitizer sees every byte too far.
class BlockBuffer {
 public:
  BlockBuffer(const PiFormat& format, std::uint32_t count);

  Blocks blocks();
  std::uint32_t count() const { return count_; }
  std::span<std::byte> data(std::uint32_t index);
  std::span<std::byte> metadata(std::uint32_t index);
  std::span<std::byte> pi(std::uint32_t index);
  const Bytes& raw_data() const { return data_; }
  const Bytes& raw_metadata() const { return metadata_; }

 private:
  PiFormat format_;
  std::uint32_t count_;
  Bytes data_, metadata_;
};

// The application's memory in pieces that lie anywhere, some of them empty. Around every piece are
// bytes that nobody may touch.
class Scattered {
 public:
  Scattered(Random& random, std::size_t size, std::size_t piece_count);

  UserMemory memory() const { return UserMemory(std::span<const iovec>(pieces_)); }
  std::size_t piece_count() const { return pieces_.size(); }
  void fill(std::span<const std::byte> bytes);
  Bytes gathered() const;
  bool surroundings_intact() const;

 private:
  std::vector<Bytes> allocations_;
  std::vector<iovec> pieces_;
};

// Random cuts, or one piece now and then.
Scattered scatter(Random& random, std::span<const std::byte> bytes);

}  // namespace nvpi::test
