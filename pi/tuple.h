// The protection information of one block: guard, application tag, storage tag, reference tag.
// NVM Command Set Specification 1.0, sections 5.2.1.1-5.2.1.4. In memory the tuple is big endian: these
// two functions are the only big-endian code of the project.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pi/format.h"

namespace nvpi {

struct PiTuple {
  std::uint64_t guard = 0;
  std::uint16_t app_tag = 0;
  std::uint64_t storage_tag = 0;
  std::uint64_t ref_tag = 0;

  bool operator==(const PiTuple&) const = default;
};

// The storage and reference tag space as one number, up to 80 bits: the storage tag in the high bits.
// Command dwords and tuples both carry it.
__extension__ using TagSpace = unsigned __int128;

inline TagSpace join_tags(const PiFormat& format, std::uint64_t storage_tag, std::uint64_t ref_tag) {
  return TagSpace{storage_tag} << format.ref_tag_size() | ref_tag;
}

// Reads or writes format.pi_size() bytes. Tags are cut to their sizes.
PiTuple decode_tuple(const PiFormat& format, const std::byte* pi) noexcept;
void encode_tuple(const PiFormat& format, const PiTuple& tuple, std::byte* pi) noexcept;

// A tuple that switches all checks of its block off: application tag FFFFh and, for type 3, a reference
// tag of all ones (section 5.2.1.5).
bool is_escape(const PiFormat& format, const PiTuple& tuple) noexcept;
constexpr std::uint16_t escape_app_tag = 0xFFFF;

}  // namespace nvpi
