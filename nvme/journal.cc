#include "nvme/journal.h"

#include <cstddef>
#include <utility>

#include "pi/guard.h"

namespace nvpi {
namespace {

// In front of data, metadata and states of the blocks; in the byte order of the machine, as all of an image.
struct RecordHeader {
  std::uint64_t block_count;  // 0: no record
  std::uint64_t lba;
  std::uint64_t checksum;  // of both, and of all that follows
};
static_assert(sizeof(RecordHeader) == 24);

std::uint64_t checksum_of(const RecordHeader& header, const BlocksView& blocks) {
  const auto fields = std::as_bytes(std::span(&header, 1)).first(offsetof(RecordHeader, checksum));
  std::uint64_t checksum = 0;
  for (const auto part : {fields, blocks.data, blocks.metadata, std::as_bytes(blocks.states)}) {
    checksum = guard(GuardType::guard_32b, part, checksum);
  }
  return checksum;
}

}  // namespace

int Journal::record(std::uint64_t lba, const BlocksView& blocks) {
  RecordHeader header{blocks.states.size(), lba, 0};
  header.checksum = checksum_of(header, blocks);
  std::uint64_t at = offset_;
  for (const auto part : {std::as_bytes(std::span(&header, 1)), blocks.data, blocks.metadata,
                          std::as_bytes(blocks.states)}) {
    if (const int error = file_.write(at, part)) return error;
    at += part.size();
  }
  return 0;
}

int Journal::forget() {
  const RecordHeader none{};
  return file_.write(offset_, std::as_bytes(std::span(&none, 1)));
}

int Journal::find(const PiFormat& format, std::uint64_t block_count, Redo& redo) const {
  redo = {};
  std::uint64_t end = 0;
  if (const int error = file_.size(end)) return error;
  RecordHeader header{};
  if (end < offset_ + sizeof header) return 0;
  if (const int error = file_.read(offset_, std::as_writable_bytes(std::span(&header, 1)))) return error;

  const std::uint64_t per_block = std::uint64_t{format.data_size()} + format.metadata_size() + 1;
  const bool is_whole = header.block_count <= (end - offset_ - sizeof header) / per_block &&
                        header.lba < block_count && header.block_count <= block_count - header.lba;
  if (header.block_count == 0 || !is_whole) return 0;
  StagedBlocks blocks;
  blocks.resize(format, header.block_count);
  std::uint64_t at = offset_ + sizeof header;
  for (const auto part : {std::span(blocks.data), std::span(blocks.metadata),
                          std::as_writable_bytes(std::span(blocks.states))}) {
    if (const int error = file_.read(at, part)) return error;
    at += part.size();
  }
  if (checksum_of(header, blocks.view(format, 0, blocks.count())) != header.checksum) return 0;
  redo = {header.lba, std::move(blocks)};
  return 0;
}

}  // namespace nvpi
