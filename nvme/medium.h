// What an emulated namespace stores its blocks on: memory, or a file that lasts.
//
// Blocks are kept apart from their metadata and from their state, so that a test can damage exactly one of
// them from outside:
//   file header (4096 bytes, files only) | data, block after block | metadata, block after block | states
// and in a file, from the next multiple of 4096 on, a journal (journal.h): write() changes all of its blocks
// or none of them, also if the process is killed. A crash of the machine may undo what was not flushed, and
// tear blocks. Unwritten parts are holes. A file records its format; opening it with another one is refused.
//
// Not thread safe. Every access that the system refuses (full disk, I/O error) is an errno value.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nvme/error.h"
#include "pi/format.h"

namespace nvpi {

// `unwritten` is also what a deallocated block is.
enum class BlockState : std::uint8_t { unwritten = 0, written = 1, uncorrectable = 2 };

// A run of blocks, data and metadata apart whatever the namespace transfers.
struct BlocksView {
  std::span<const std::byte> data, metadata;
  std::span<const BlockState> states;
};
struct StagedBlocks {
  std::vector<std::byte> data, metadata;
  std::vector<BlockState> states;

  std::size_t count() const { return states.size(); }
  void resize(const PiFormat& format, std::size_t count) {
    data.resize(count * format.data_size());
    metadata.resize(count * format.metadata_size());
    states.resize(count);
  }
  BlocksView view(const PiFormat& format, std::size_t first, std::size_t count) const {
    return {std::span(data).subspan(first * format.data_size(), count * format.data_size()),
            std::span(metadata).subspan(first * format.metadata_size(), count * format.metadata_size()),
            std::span(states).subspan(first, count)};
  }
};

class Medium {
 public:
  static Result<std::unique_ptr<Medium>> in_memory(const PiFormat& format, std::uint64_t block_count);
  // Opens the file if it exists, and makes it otherwise.
  static Result<std::unique_ptr<Medium>> in_file(const std::string& path, const PiFormat& format,
                                                 std::uint64_t block_count);
  // What an existing file says of itself. Errc::bad_medium if it is no medium.
  struct Description {
    PiFormat format;
    std::uint64_t block_count;
  };
  static Result<Description> describe(const std::string& path);

  virtual ~Medium() = default;

  const PiFormat& format() const { return format_; }
  std::uint64_t block_count() const { return block_count_; }

  // Blocks with all that belongs to them: as many as `target` has room for. Return 0 or an errno value.
  int read(std::uint64_t lba, StagedBlocks& target);
  virtual int write(std::uint64_t lba, const BlocksView& source);

  // One part of whole blocks; sizes are multiples of the block's data or metadata size, or of one byte for
  // states.
  int read_data(std::uint64_t lba, std::span<std::byte> target);
  int read_metadata(std::uint64_t lba, std::span<std::byte> target);
  int read_states(std::uint64_t lba, std::span<BlockState> target);
  int write_data(std::uint64_t lba, std::span<const std::byte> source);
  int write_metadata(std::uint64_t lba, std::span<const std::byte> source);
  int write_states(std::uint64_t lba, std::span<const BlockState> source);
  virtual int flush() = 0;

 protected:
  Medium(const PiFormat& format, std::uint64_t block_count, std::uint64_t data_offset);
  std::uint64_t size() const { return states_offset_ + block_count_; }
  virtual int read_at(std::uint64_t offset, std::span<std::byte> target) = 0;
  virtual int write_at(std::uint64_t offset, std::span<const std::byte> source) = 0;

 private:
  PiFormat format_;
  std::uint64_t block_count_;
  std::uint64_t data_offset_, metadata_offset_, states_offset_;
};

}  // namespace nvpi
