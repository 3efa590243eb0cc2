// Bounce memory: one slab, allocated once, cut into equal slots that the device transfers to and from.
//
// A slot holds a data area (page aligned) and a metadata area behind it (cache line aligned). The slab is
// page aligned, backed by huge pages where the system gives them, and touched at once, so that no page is
// faulted in on the way of an I/O.
//
// Ownership: a BounceBuffer is the right to use a slot; destroying it gives the slot back. While the device
// may still transfer, a slot must not go back: whoever loses track of a command calls abandon(), which leaks
// the slot, and with it the slab, on purpose. Handing such memory out again would let a late transfer
// corrupt somebody else's data.
//
// Threads: a pool and its buffers belong to one thread at a time. Errors: none but an empty pool, which is
// back-pressure, and memory that cannot be had at creation.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tl/expected.hpp>
#include <vector>

namespace nvpi {

class BouncePool;

class BounceBuffer {
 public:
  BounceBuffer() = default;
  BounceBuffer(BounceBuffer&& other) noexcept;
  BounceBuffer& operator=(BounceBuffer&& other) noexcept;
  ~BounceBuffer() { release(); }

  explicit operator bool() const { return pool_ != nullptr; }
  std::uint32_t index() const { return index_; }  // of the slot in its pool
  std::span<std::byte> data() const;
  std::span<std::byte> metadata() const;

  void release();  // the slot may be handed out again
  void abandon();  // the slot is never handed out again

 private:
  friend class BouncePool;
  BounceBuffer(BouncePool* pool, std::uint32_t index) : pool_(pool), index_(index) {}
  BouncePool* pool_ = nullptr;
  std::uint32_t index_ = 0;
};

class BouncePool {
 public:
  struct Options {
    std::uint32_t slot_count = 0;
    std::size_t data_size = 0;      // bytes a slot
    std::size_t metadata_size = 0;  // bytes a slot
    bool huge_pages = true;         // ask for them; not having them is no error
  };
  enum class Backing : std::uint8_t { huge_pages, transparent_huge_pages, small_pages };

  // Fails with an errno value if the memory cannot be mapped.
  static tl::expected<std::unique_ptr<BouncePool>, int> create(const Options& options) noexcept;

  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;
  ~BouncePool();  // every buffer was released or abandoned before

  BounceBuffer acquire() noexcept;  // empty if every slot is in use

  std::uint32_t slot_count() const { return options_.slot_count; }
  std::uint32_t free_count() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t abandoned_count() const { return abandoned_; }
  Backing backing() const { return backing_; }
  iovec data_area(std::uint32_t index) const;  // for registration with the kernel, one entry a slot

 private:
  friend class BounceBuffer;
  explicit BouncePool(const Options& options);
  int map() noexcept;
  std::byte* slot(std::uint32_t index) const { return slab_ + index * slot_stride_; }

  Options options_;
  std::size_t metadata_offset_;
  std::size_t slot_stride_;
  std::size_t slab_size_ = 0;
  std::byte* slab_ = nullptr;
  Backing backing_ = Backing::small_pages;
  std::vector<std::uint32_t> free_;  // a stack: the slot used last is still in the cache
  std::uint32_t abandoned_ = 0;
};

}  // namespace nvpi
