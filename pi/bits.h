// The bits of a word in reverse, for CRCs whose lowest bit is the highest coefficient. With internal linkage:
// the guard's kernels compile it for their own instruction sets.
#pragma once

#include <cstdint>

namespace nvpi {

static constexpr std::uint64_t reversed(std::uint64_t bits) {
  std::uint64_t r = 0;
  for (int i = 0; i < 64; ++i) r |= ((bits >> i) & 1) << (63 - i);
  return r;
}

}  // namespace nvpi
