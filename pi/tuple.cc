#include "pi/tuple.h"

namespace nvpi {
namespace {

TagSpace load_big_endian(const std::byte* source, unsigned size) {
  TagSpace value = 0;
  for (unsigned i = 0; i < size; ++i) value = value << 8 | std::to_integer<unsigned>(source[i]);
  return value;
}

void store_big_endian(std::byte* target, unsigned size, TagSpace value) {
  for (unsigned i = size; i-- > 0; value >>= 8) {
    target[i] = static_cast<std::byte>(static_cast<std::uint8_t>(value));
  }
}

}  // namespace

PiTuple decode_tuple(const PiFormat& format, const std::byte* pi) noexcept {
  const unsigned guard_bytes = guard_size(format.guard());
  const unsigned tags_at = guard_bytes + 2;
  const TagSpace tags = load_big_endian(pi + tags_at, format.pi_size() - tags_at);
  return {
      .guard = static_cast<std::uint64_t>(load_big_endian(pi, guard_bytes)),
      .app_tag = static_cast<std::uint16_t>(load_big_endian(pi + guard_bytes, 2)),
      .storage_tag =
          static_cast<std::uint64_t>(tags >> format.ref_tag_size()) & format.storage_tag_max(),
      .ref_tag = static_cast<std::uint64_t>(tags) & format.ref_tag_max(),
  };
}

void encode_tuple(const PiFormat& format, const PiTuple& tuple, std::byte* pi) noexcept {
  const unsigned guard_bytes = guard_size(format.guard());
  const unsigned tags_at = guard_bytes + 2;
  store_big_endian(pi, guard_bytes, tuple.guard);
  store_big_endian(pi + guard_bytes, 2, tuple.app_tag);
  store_big_endian(pi + tags_at, format.pi_size() - tags_at,
                   join_tags(format, tuple.storage_tag & format.storage_tag_max(),
                             tuple.ref_tag & format.ref_tag_max()));
}

bool is_escape(const PiFormat& format, const PiTuple& tuple) noexcept {
  if (tuple.app_tag != escape_app_tag) return false;
  return format.type() != PiType::type_3 || tuple.ref_tag == format.ref_tag_max();
}

}  // namespace nvpi
