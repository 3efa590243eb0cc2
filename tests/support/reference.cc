#include "support/reference.h"

#include <array>

namespace nvpi::test {
namespace {

using Table = std::array<std::uint64_t, 256>;

// CRC-16/T10-DIF: polynomial 8BB7, most significant bit first, nothing inverted.
Table make_16b_table() {
  Table table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::uint64_t r = std::uint64_t{byte} << 8;
    for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r & 0x8000) != 0 ? 0x18BB7u : 0u);
    table[byte] = r & 0xFFFF;
  }
  return table;
}

// CRC-32C and CRC-64/NVME: reflected, inverted before and after.
Table make_reflected_table(std::uint64_t polynomial) {
  Table table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::uint64_t r = byte;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? polynomial : 0);
    table[byte] = r;
  }
  return table;
}

std::uint64_t reflected(const Table& table, std::uint64_t ones, std::span<const std::byte> bytes) {
  std::uint64_t r = ones;
  for (const std::byte b : bytes) r = (r >> 8) ^ table[(r ^ std::to_integer<unsigned>(b)) & 0xFF];
  return r ^ ones;
}

void append_bits(std::vector<bool>& bits, std::uint64_t value, unsigned count) {
  for (unsigned i = count; i-- > 0;) bits.push_back((value >> i & 1) != 0);
}

}  // namespace

std::uint64_t reference_guard(GuardType type, std::span<const std::byte> bytes) {
  static const Table table_16b = make_16b_table();
  static const Table table_32b = make_reflected_table(0x82F63B78);
  static const Table table_64b = make_reflected_table(0x9A6C9329AC4BC9B5);
  if (type == GuardType::guard_32b) return reflected(table_32b, 0xFFFFFFFF, bytes);
  if (type == GuardType::guard_64b) return reflected(table_64b, ~0ull, bytes);
  std::uint64_t r = 0;
  for (const std::byte b : bytes) {
    r = (r << 8 & 0xFFFF) ^ table_16b[(r >> 8) ^ std::to_integer<unsigned>(b)];
  }
  return r;
}

std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~0ull : (1ull << count) - 1;
}

unsigned reference_pi_size(GuardType type) {
  return type == GuardType::guard_16b ? 8 : 16;
}

unsigned reference_ref_tag_size(const PiFormat::Fields& fields) {
  constexpr unsigned space[] = {32, 80, 48};
  return space[static_cast<unsigned>(fields.guard)] - fields.storage_tag_size;
}

std::size_t reference_pi_offset(const PiFormat::Fields& fields) {
  const bool first = fields.position == PiPosition::first;
  return first ? 0 : fields.metadata_size - reference_pi_size(fields.guard);
}

Bytes reference_tuple(const PiFormat::Fields& fields, const PiTuple& tuple) {
  constexpr unsigned guard_bits[] = {16, 32, 64};
  std::vector<bool> bits;
  append_bits(bits, tuple.guard, guard_bits[static_cast<unsigned>(fields.guard)]);
  append_bits(bits, tuple.app_tag, 16);
  append_bits(bits, tuple.storage_tag, fields.storage_tag_size);
  append_bits(bits, tuple.ref_tag, reference_ref_tag_size(fields));
  Bytes bytes(bits.size() / 8);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] |= static_cast<std::byte>(0x80 >> i % 8);
  }
  return bytes;
}

PiTuple reference_tuple_of(const PiFormat::Fields& fields, const PiTags& tags, std::uint64_t index,
                           std::span<const std::byte> data, std::span<const std::byte> metadata) {
  Bytes guarded(data.begin(), data.end());
  const auto covered = metadata.first(reference_pi_offset(fields));
  guarded.insert(guarded.end(), covered.begin(), covered.end());
  const std::uint64_t step = fields.type == PiType::type_3 ? 0 : index;
  return {.guard = reference_guard(fields.guard, guarded),
          .app_tag = tags.app_tag,
          .storage_tag = tags.storage_tag,
          .ref_tag = (tags.initial_ref_tag + step) & low_bits(reference_ref_tag_size(fields))};
}

}  // namespace nvpi::test
