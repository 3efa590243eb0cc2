#include "support/memory.h"

#include <algorithm>

namespace nvpi::test {
namespace {

constexpr std::size_t margin = 32;
constexpr std::byte margin_byte{0xC9};

}  // namespace

BlockBuffer::BlockBuffer(const PiFormat& format, std::uint32_t count)
    : format_(format),
      count_(count),
      data_(std::size_t{count} * format.data_stride(), std::byte{0xEE}),
      metadata_(format.extended() ? 0 : std::size_t{count} * format.metadata_size(),
                std::byte{0xEE}) {}

Blocks BlockBuffer::blocks() {
  return {data_.data(), metadata_.empty() ? nullptr : metadata_.data(), count_};
}

std::span<std::byte> BlockBuffer::data(std::uint32_t index) {
  return std::span(data_).subspan(std::size_t{index} * format_.data_stride(), format_.data_size());
}

std::span<std::byte> BlockBuffer::metadata(std::uint32_t index) {
  const std::size_t size = format_.metadata_size();
  if (!format_.extended()) return std::span(metadata_).subspan(index * size, size);
  const std::size_t at = std::size_t{index} * (format_.data_size() + size) + format_.data_size();
  return std::span(data_).subspan(at, size);
}

std::span<std::byte> BlockBuffer::pi(std::uint32_t index) {
  const bool wide = format_.guard() != GuardType::guard_16b;
  const std::size_t size = wide ? 16 : 8;
  const bool first = format_.position() == PiPosition::first;
  return first ? metadata(index).first(size) : metadata(index).last(size);
}

Scattered::Scattered(Random& random, std::size_t size, std::size_t piece_count) {
  std::vector<std::size_t> cuts = {0, size};
  for (std::size_t i = 1; i < piece_count; ++i) cuts.push_back(below(random, size + 1));
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::size_t length = cuts[i + 1] - cuts[i];
    const std::size_t shift = below(random, 16);  // any alignment
    allocations_.emplace_back(shift + length + 2 * margin, margin_byte);
    pieces_.push_back({allocations_.back().data() + margin + shift, length});
  }
}

void Scattered::fill(std::span<const std::byte> bytes) {
  for (const iovec& piece : pieces_) {
    std::copy_n(bytes.begin(), piece.iov_len, static_cast<std::byte*>(piece.iov_base));
    bytes = bytes.subspan(piece.iov_len);
  }
}

Bytes Scattered::gathered() const {
  Bytes bytes;
  for (const iovec& piece : pieces_) {
    const auto* base = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), base, base + piece.iov_len);
  }
  return bytes;
}

bool Scattered::surroundings_intact() const {
  const auto untouched = [](std::byte b) { return b == margin_byte; };
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::byte* const begin = static_cast<const std::byte*>(pieces_[i].iov_base);
    const std::byte* const end = begin + pieces_[i].iov_len;
    const std::byte* const from = allocations_[i].data();
    const std::byte* const to = from + allocations_[i].size();
    if (!std::all_of(from, begin, untouched) || !std::all_of(end, to, untouched)) return false;
  }
  return true;
}

Scattered scatter(Random& random, std::span<const std::byte> bytes) {
  Scattered scattered(random, bytes.size(), 1 + below(random, 4) * below(random, 6));
  scattered.fill(bytes);
  return scattered;
}

}  // namespace nvpi::test
