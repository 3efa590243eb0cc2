// The zones of an emulated namespace: where each may be written. Zoned Namespace Command Set Specification
// 1.1, sections 2.1.1 (zones) and 3.4.1 (Zone Append).
//
// All zones are sequential write required; any number of them may be open. Zones are not kept in an image.
#pragma once

#include <cstdint>
#include <vector>

#include "nvme/status.h"

namespace nvpi {

class Zones {
 public:
  // In blocks; a size of 0 makes no zones. The size divides the block count.
  Zones(std::uint64_t size, std::uint64_t capacity, std::uint64_t block_count);

  explicit operator bool() const { return size_ > 0; }
  std::uint64_t count() const { return write_pointers_.size(); }
  std::uint64_t start_of(std::uint64_t lba) const { return lba - lba % size_; }  // ZSLBA
  // Of the zone in which the LBA lies.
  std::uint64_t write_pointer(std::uint64_t lba) const { return write_pointers_[lba / size_]; }
  bool is_full(std::uint64_t lba) const { return write_pointer(lba) == end_of(lba); }

  // Whether `count` blocks may be written at this LBA now: it is the write pointer, they fit.
  Status check_write(std::uint64_t lba, std::uint64_t count) const;
  void advance(std::uint64_t lba, std::uint64_t count) { write_pointers_[lba / size_] += count; }
  void reset(std::uint64_t lba) { write_pointers_[lba / size_] = start_of(lba); }
  void finish(std::uint64_t lba) { write_pointers_[lba / size_] = end_of(lba); }

 private:
  std::uint64_t end_of(std::uint64_t lba) const { return start_of(lba) + capacity_; }
  std::uint64_t size_, capacity_;
  std::vector<std::uint64_t> write_pointers_;
};

}  // namespace nvpi
