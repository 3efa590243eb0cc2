#include "pi/remap.h"

#include <cassert>

#include "pi/walk.h"

namespace nvpi {

RemapCounts remap(const PiFormat& format, const PiRemap& changes, const Blocks& blocks) noexcept {
  assert(format.has_pi());
  RemapCounts counts;
  DeviceWalk block(format, blocks);
  for (std::uint32_t i = 0; i < blocks.count; ++i, block.next()) {
    std::byte* const pi = block.metadata + format.pi_offset();
    PiTuple tuple = decode_tuple(format, pi);
    if (is_escape(format, tuple)) {
      ++counts.unprotected;
      continue;
    }
    tuple.app_tag = changes.app_tag.value_or(tuple.app_tag);
    tuple.storage_tag = changes.storage_tag.value_or(tuple.storage_tag);
    if (changes.initial_ref_tag) tuple.ref_tag = format.ref_tag_at(*changes.initial_ref_tag, i);
    encode_tuple(format, tuple, pi);
    ++counts.remapped;
  }
  return counts;
}

}  // namespace nvpi
