// Memory of the application: one piece or many, and free to change at any moment.
//
// A UserMemory is a view. It owns nothing; the pieces and the array that lists them must outlive it and
// every command made from it. A window into it (subview) is again a UserMemory and copies no list.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace nvpi {

class UserMemory {
 public:
  UserMemory() = default;
  UserMemory(void* base, std::size_t size) : single_{base, size}, size_(size) {}
  explicit UserMemory(std::span<std::byte> bytes) : UserMemory(bytes.data(), bytes.size()) {}
  explicit UserMemory(std::span<const iovec> pieces);
  // Memory that will only be read. The view cannot tell; the functions that take it say which they do.
  static UserMemory read_only(std::span<const std::byte> bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  UserMemory subview(std::size_t offset, std::size_t size) const;  // within this view

  // All bytes if they lie in one piece, else null: what a zero-copy transfer needs.
  std::byte* contiguous() const;

  // Walks over the view from its start.
  class Cursor {
   public:
    explicit Cursor(const UserMemory& memory);
    // The next run of contiguous bytes, at most `limit` of them; moves past it. Empty at the end.
    std::span<std::byte> next(std::size_t limit);
    // The contiguous bytes that lie ahead, without moving.
    std::span<std::byte> ahead() const { return {at_, left_in_piece_}; }

   private:
    void enter_piece();
    const iovec* piece_ = nullptr;
    std::byte* at_ = nullptr;
    std::size_t left_in_piece_ = 0;
    std::size_t left_ = 0;
  };

 private:
  iovec single_{};                  // used if pieces_ is null
  const iovec* pieces_ = nullptr;
  std::size_t skip_ = 0;            // bytes before the view in the first piece
  std::size_t size_ = 0;
};

}  // namespace nvpi
