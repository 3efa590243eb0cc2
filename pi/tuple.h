// The protection information of one block: guard, application tag, storage tag, reference tag.
// NVM Command Set Specification 1.0, sections 5.2.1.1-5.2.1.4. In memory the tuple is big endian:
// the functions here that take its address are the only big-endian code of the project.
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

// The storage and reference tag space as one number, up to 80 bits: the storage tag in the high
// bits. Command dwords and tuples both carry it.
__extension__ using TagSpace = unsigned __int128;

inline TagSpace join_tags(const PiFormat& format, std::uint64_t storage_tag,
                          std::uint64_t ref_tag) {
  return TagSpace{storage_tag} << format.ref_tag_size() | ref_tag;
}

// Reads or writes format.pi_size() bytes. Tags are cut to their sizes.
PiTuple decode_tuple(const PiFormat& format, const std::byte* pi) noexcept;
void encode_tuple(const PiFormat& format, const PiTuple& tuple, std::byte* pi) noexcept;

// A whole tuple as one number of pi_size() bytes, its first byte the most significant: the guard on
// top, then the application tag, then the tag space. Code that goes over many tuples puts together
// what they have in common, and compares all tags of two of them at once.
__extension__ using TupleNumber = unsigned __int128;

TupleNumber load_tuple(const PiFormat& format, const std::byte* pi) noexcept;
void store_tuple(const PiFormat& format, TupleNumber number, std::byte* pi) noexcept;

inline unsigned tag_space_size(GuardType type) {  // bits
  static constexpr unsigned sizes[] = {32, 80, 48};
  return sizes[static_cast<unsigned>(type)];
}

// Only the guard, at its place; only the tags, cut to their sizes.
inline unsigned guard_shift(const PiFormat& format) {  // in the first 64 bits
  return 64 - (16u << static_cast<unsigned>(format.guard()));
}
inline TupleNumber number_of_guard(const PiFormat& format, std::uint64_t guard) {
  const TupleNumber top = guard << guard_shift(format);
  return format.pi_size() == 8 ? top : top << 64;
}
inline TupleNumber number_of_tags(const PiFormat& format, std::uint16_t app_tag,
                                  std::uint64_t storage_tag, std::uint64_t ref_tag) {
  TupleNumber number = TupleNumber{app_tag} << tag_space_size(format.guard());
  if (format.storage_tag_size() > 0) {  // seldom
    number |= join_tags(format, storage_tag & format.storage_tag_max(), 0);
  }
  return number | (ref_tag & format.ref_tag_max());
}
PiTuple tuple_of(const PiFormat& format, TupleNumber number) noexcept;

// A tuple that switches all checks of its block off: application tag FFFFh and, for type 3, a
// reference tag of all ones (section 5.2.1.5).
bool is_escape(const PiFormat& format, const PiTuple& tuple) noexcept;
constexpr std::uint16_t escape_app_tag = 0xFFFF;

}  // namespace nvpi
