#include "bounce/bounce_pool.h"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace nvpi {
namespace {

constexpr std::size_t page_size = 4096;
constexpr std::size_t huge_page_size = 2u << 20;
constexpr std::size_t cache_line_size = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

BounceBuffer::BounceBuffer(BounceBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}

BounceBuffer& BounceBuffer::operator=(BounceBuffer&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    index_ = other.index_;
  }
  return *this;
}

std::span<std::byte> BounceBuffer::data() const {
  return {pool_->slot(index_), pool_->options_.data_size};
}

std::span<std::byte> BounceBuffer::metadata() const {
  return {pool_->slot(index_) + pool_->metadata_offset_, pool_->options_.metadata_size};
}

void BounceBuffer::release() {
  if (pool_ == nullptr) return;
  pool_->free_.push_back(index_);
  pool_ = nullptr;
}

void BounceBuffer::abandon() {
  if (pool_ == nullptr) return;
  ++pool_->abandoned_;
  pool_ = nullptr;
}

BouncePool::BouncePool(const Options& options)
    : options_(options),
      metadata_offset_(round_up(options.data_size, cache_line_size)),
      slot_stride_(round_up(metadata_offset_ + options.metadata_size, page_size)) {
  free_.reserve(options.slot_count);
  for (std::uint32_t i = options.slot_count; i-- > 0;) free_.push_back(i);
}

tl::expected<std::unique_ptr<BouncePool>, int> BouncePool::create(const Options& options) noexcept {
  assert(options.slot_count > 0 && options.data_size > 0);
  try {
    std::unique_ptr<BouncePool> pool(new BouncePool(options));
    if (const int error = pool->map(); error != 0) return tl::make_unexpected(error);
    return pool;
  } catch (const std::bad_alloc&) {
    return tl::make_unexpected(ENOMEM);
  }
}

int BouncePool::map() noexcept {
  const std::size_t wanted = slot_stride_ * options_.slot_count;
  const auto try_map = [&](std::size_t size, int flags) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED) return false;
    slab_ = static_cast<std::byte*>(memory);
    slab_size_ = size;
    return true;
  };
  const bool large = options_.huge_pages && wanted >= huge_page_size;
  if (large && try_map(round_up(wanted, huge_page_size), MAP_HUGETLB)) {
    backing_ = Backing::huge_pages;
  } else if (!try_map(large ? round_up(wanted, huge_page_size) : wanted, 0)) {
    return errno;
  } else if (large && madvise(slab_, slab_size_, MADV_HUGEPAGE) == 0) {
    backing_ = Backing::transparent_huge_pages;
  }
  // A child of fork() must not share these pages: copy-on-write would move ours away from a transfer.
  madvise(slab_, slab_size_, MADV_DONTFORK);
  std::memset(slab_, 0, slab_size_);
  return 0;
}

BouncePool::~BouncePool() {
  if (slab_ == nullptr) return;
  assert(free_.size() + abandoned_ == options_.slot_count);
  // The device may still write to an abandoned slot, so its memory stays mapped for good.
  if (abandoned_ == 0) munmap(slab_, slab_size_);
}

BounceBuffer BouncePool::acquire() noexcept {
  if (free_.empty()) return {};
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return {this, index};
}

iovec BouncePool::data_area(std::uint32_t index) const { return {slot(index), options_.data_size}; }

}  // namespace nvpi
