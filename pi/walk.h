// From one block to the next, through device blocks and through user memory. Internal to pi/.
//
// Blocks of 512 bytes take a dozen nanoseconds with their guard, so a step must cost next to
// nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "pi/format.h"
#include "pi/protect.h"
#include "pi/single_load.h"
#include "pi/user_memory.h"

namespace nvpi {

// Data and metadata of a device block; those of the block behind it after next().
struct DeviceWalk {
  DeviceWalk(const PiFormat& format, const Blocks& blocks)
      : data(blocks.data),
        metadata(format.extended() ? data + format.data_size() : blocks.metadata),
        data_stride(format.data_stride()),
        metadata_stride(format.extended() ? data_stride : format.metadata_size()) {}

  void next() {
    data += data_stride;
    metadata += metadata_stride;
  }

  std::byte* data;
  std::byte* metadata;  // means nothing if there is none
  std::size_t data_stride;
  std::size_t metadata_stride;
};

// User memory from front to back, a piece at a time. Looks at the first piece without moving the
// cursor: Cursor::next() loads two of its fields at once just after they were stored apart, and
// such a load waits for every store before it, those of the block before included.
class UserWalk {
 public:
  explicit UserWalk(const UserMemory& memory) : cursor_(memory) { enter_piece(); }

  // The next `size` bytes, if they lie in one piece; else null, and nothing moves.
  std::byte* whole(std::size_t size) {
    if (left() < size) return nullptr;
    at_ += size;
    return at_ - size;
  }

  // Calls step(run, done) for the contiguous runs of the next `size` bytes.
  template <typename Step>
  void for_each_run(std::size_t size, Step step) {
    for (std::size_t done = 0; done < size;) {
      if (at_ == end_) {
        cursor_.next(cursor_.ahead().size());
        enter_piece();
      }
      const std::span<std::byte> run(at_, std::min(size - done, left()));
      at_ += run.size();
      step(run, done);
      done += run.size();
    }
  }

  const std::byte* piece_end() const { return end_; }

  [[gnu::noinline]] void copy_in(std::byte* target, std::size_t size) {
    for_each_run(size, [&](std::span<std::byte> run, std::size_t done) {
      copy_once(target + done, run.data(), run.size());
    });
  }
  [[gnu::noinline]] void copy_out(const std::byte* source, std::size_t size) {
    for_each_run(size, [&](std::span<std::byte> run, std::size_t done) {
      copy_once(run.data(), source + done, run.size());
    });
  }
  [[gnu::noinline]] void erase(std::size_t size) {
    for_each_run(size, [](std::span<std::byte> run, std::size_t) {
      std::memset(run.data(), 0, run.size());
    });
  }

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void enter_piece() {
    at_ = cursor_.ahead().data();
    end_ = at_ + cursor_.ahead().size();
  }

  UserMemory::Cursor cursor_;  // stands at the start of the piece
  std::byte* at_;
  std::byte* end_;
};

}  // namespace nvpi
