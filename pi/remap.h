// Other tags for blocks that have protection information: they move to another address, or to
// another owner, and nobody needs to touch their data for that.
#pragma once

#include <cstdint>
#include <optional>

#include "pi/protect.h"

namespace nvpi {

// What changes. A tag that is left out stays as it is in every tuple. Tags are cut to their sizes.
struct PiRemap {
  std::optional<std::uint16_t> app_tag = {};  // FFFFh makes escapes: see is_escape()
  std::optional<std::uint64_t> storage_tag = {};
  std::optional<std::uint64_t> initial_ref_tag = {};  // of the first block; counts as in protect()
};

struct RemapCounts {
  std::uint64_t remapped = 0;
  std::uint64_t unprotected = 0;  // escape tags: left as they are, or checks would begin to fail
};

// Changes the tags of blocks where they lie; needs PI in the format. Neither guards nor data are
// read or written, so a tuple that was wrong stays wrong in the same way. As pure as the functions
// of protect.h.
RemapCounts remap(const PiFormat& format, const PiRemap& changes, const Blocks& blocks) noexcept;

}  // namespace nvpi
