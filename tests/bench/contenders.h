// What is compared: ways to move the blocks of one I/O between user memory and a slot.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "pi/format.h"

namespace nvpi::bench {

enum class Direction { write, read };  // from user memory into a slot, or back

// Metadata in the separate layout lies behind the data of the longest I/O.
constexpr std::size_t longest_io = 64 * 1024;
constexpr std::size_t slot_size = longest_io + 16 * 1024;

// Transfers `size` bytes of data. A slot that is read holds blocks that verify.
using Transfer = std::function<void(std::byte* user, std::byte* slot, std::size_t size)>;

struct Contender {
  std::string name;
  PiFormat format;  // of the blocks in the slots
  Transfer transfer;
  bool judged = false;  // a bar is for these
};

// One memcpy of all data, whatever the format: as fast as a transfer can be.
Contender plain_memcpy(const PiFormat& format, Direction direction);

// The best that ISA-L has to offer for this format: its fused copy, or memcpy and then its guard.
// Its releases before 2.31 have no CRC-64/NVME; there the 128-bit kernel stands in.
Contender isal_reference(const PiFormat& format, Direction direction);

// Every kernel that this CPU supports, and the public functions in both layouts, which use the
// kernel that NVPI_GUARD names or else the fastest.
std::vector<Contender> nvpi_contenders(const PiFormat& format, Direction direction);

// Fills a slot with blocks that verify, in the given layout.
void fill_slot(const PiFormat& format, std::byte* slot, std::size_t size);

}  // namespace nvpi::bench
