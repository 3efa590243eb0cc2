#include "pi/user_memory.h"

#include <algorithm>
#include <cassert>

namespace nvpi {

UserMemory::UserMemory(std::span<const iovec> pieces) : pieces_(pieces.data()) {
  for (const iovec& piece : pieces) size_ += piece.iov_len;
}

UserMemory UserMemory::subview(std::size_t offset, std::size_t size) const {
  assert(offset <= size_ && size <= size_ - offset);
  UserMemory view = *this;
  view.size_ = size;
  view.skip_ += offset;
  if (pieces_ != nullptr && size > 0) {
    while (view.skip_ >= view.pieces_->iov_len) {
      view.skip_ -= view.pieces_->iov_len;
      ++view.pieces_;
    }
  }
  return view;
}

std::byte* UserMemory::contiguous() const {
  if (empty()) return nullptr;
  Cursor cursor(*this);
  const auto run = cursor.next(size_);
  return run.size() == size_ ? run.data() : nullptr;
}

UserMemory::Cursor::Cursor(const UserMemory& memory) : left_(memory.size_) {
  if (left_ == 0) return;
  piece_ = memory.pieces_ == nullptr ? &memory.single_ : memory.pieces_;
  at_ = static_cast<std::byte*>(piece_->iov_base) + memory.skip_;
  left_in_piece_ = std::min(piece_->iov_len - memory.skip_, left_);
  if (left_in_piece_ == 0) enter_piece();
}

void UserMemory::Cursor::enter_piece() {
  while (left_in_piece_ == 0 && left_ > 0) {
    ++piece_;
    at_ = static_cast<std::byte*>(piece_->iov_base);
    left_in_piece_ = std::min(piece_->iov_len, left_);
  }
}

std::span<std::byte> UserMemory::Cursor::next(std::size_t limit) {
  const std::span<std::byte> run(at_, std::min(limit, left_in_piece_));
  at_ += run.size();
  left_ -= run.size();
  left_in_piece_ -= run.size();
  if (left_in_piece_ == 0 && left_ > 0) enter_piece();
  return run;
}

}  // namespace nvpi
