#include "pi/tuple.h"

#include <bit>
#include <cstring>

namespace nvpi {
namespace {

static_assert(std::endian::native == std::endian::little);

std::uint64_t load_big_endian(const std::byte* source) {
  std::uint64_t word;
  std::memcpy(&word, source, sizeof word);
  return __builtin_bswap64(word);
}

void store_big_endian(std::byte* target, TupleNumber number) {  // the low 64 bits
  const std::uint64_t word = __builtin_bswap64(static_cast<std::uint64_t>(number));
  std::memcpy(target, &word, sizeof word);
}

}  // namespace

TupleNumber load_tuple(const PiFormat& format, const std::byte* pi) noexcept {
  if (format.pi_size() == 8) return load_big_endian(pi);
  return TupleNumber{load_big_endian(pi)} << 64 | load_big_endian(pi + 8);
}

void store_tuple(const PiFormat& format, TupleNumber number, std::byte* pi) noexcept {
  if (format.pi_size() == 8) return store_big_endian(pi, number);
  store_big_endian(pi, number >> 64);
  store_big_endian(pi + 8, number);
}

PiTuple tuple_of(const PiFormat& format, TupleNumber number) noexcept {
  const TupleNumber above_tags = number >> tag_space_size(format.guard());
  return {
      .guard = static_cast<std::uint64_t>(above_tags >> 16),
      .app_tag = static_cast<std::uint16_t>(above_tags),
      .storage_tag =
          static_cast<std::uint64_t>(number >> format.ref_tag_size()) & format.storage_tag_max(),
      .ref_tag = static_cast<std::uint64_t>(number) & format.ref_tag_max(),
  };
}

PiTuple decode_tuple(const PiFormat& format, const std::byte* pi) noexcept {
  return tuple_of(format, load_tuple(format, pi));
}

void encode_tuple(const PiFormat& format, const PiTuple& tuple, std::byte* pi) noexcept {
  store_tuple(format,
              number_of_guard(format, tuple.guard) |
                  number_of_tags(format, tuple.app_tag, tuple.storage_tag, tuple.ref_tag),
              pi);
}

bool is_escape(const PiFormat& format, const PiTuple& tuple) noexcept {
  if (tuple.app_tag != escape_app_tag) return false;
  return format.type() != PiType::type_3 || tuple.ref_tag == format.ref_tag_max();
}

}  // namespace nvpi
