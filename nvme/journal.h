// A redo journal of one record, at the end of an image: what makes a write whole if the process is killed.
//
// A write is first recorded, then carried out in place, then forgotten. A record that is found at opening is
// carried out again. One that is not whole, because the process was killed while recording, has a wrong
// checksum: nothing was changed in place then, and it is ignored.
//
// The page cache keeps the order of writes, so this holds for a process that is killed, not for a machine that
// loses power. Internal to nvme/.
#pragma once

#include <cstdint>

#include "nvme/image_file.h"
#include "nvme/medium.h"

namespace nvpi {

class Journal {
 public:
  // In the file, from this offset on: a multiple of the page size, so that forget() happens or does not.
  Journal(ImageFile& file, std::uint64_t offset) : file_(file), offset_(offset) {}

  // Return 0 or an errno value.
  int record(std::uint64_t lba, const BlocksView& blocks);
  int forget();

  // What was recorded and not forgotten. Nothing to redo: no blocks.
  struct Redo {
    std::uint64_t lba = 0;
    StagedBlocks blocks;
  };
  int find(const PiFormat& format, std::uint64_t block_count, Redo& redo) const;

 private:
  ImageFile& file_;
  std::uint64_t offset_;
};

}  // namespace nvpi
