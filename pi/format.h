// How a namespace lays out its blocks: data, metadata and the protection information in it.
// NVM Command Set Specification 1.0, sections 4.1.5 (Identify) and 5.2 (end-to-end data protection).
//
// PiFormat is a value: made once by its checking factory, immutable, safe to share between threads.
// Sizes are in bytes, tag sizes in bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tl/expected.hpp>

#include "pi/guard.h"

namespace nvpi {

enum class PiType : std::uint8_t { none = 0, type_1 = 1, type_2 = 2, type_3 = 3 };  // DPS 2:0
enum class PiPosition : std::uint8_t { last, first };  // in the metadata of a block; DPS bit 3
enum class MetadataLayout : std::uint8_t { separate, extended };  // FLBAS bit 4

// Why a format is illegal: the offending field by the name that the tool uses for it (ds, ms, pi, pif,
// sts, lbstm), its value, and the rule in words.
struct FormatError {
  std::string_view field;
  std::uint64_t value;
  std::string_view rule;
};

class PiFormat {
 public:
  struct Fields {
    std::uint32_t data_size = 4096;
    std::uint32_t metadata_size = 0;
    MetadataLayout layout = MetadataLayout::separate;
    PiType type = PiType::none;
    PiPosition position = PiPosition::last;
    GuardType guard = GuardType::guard_16b;
    unsigned storage_tag_size = 0;
    std::uint64_t storage_tag_mask = ~0ull;  // LBSTM; bits above the storage tag are ignored
  };

  // Refuses what no namespace may have: data that is no power of two of at least 512 bytes, metadata too
  // small for the PI, a storage tag size outside the guard's range (16b 0-32, 32b 16-64, 64b 0-48), a 32b
  // or 64b guard on blocks below 4096 bytes. Guard and tag sizes are only looked at if there is PI.
  static tl::expected<PiFormat, FormatError> create(const Fields& fields) noexcept;

  const Fields& fields() const { return fields_; }  // normalised
  std::uint32_t data_size() const { return fields_.data_size; }
  std::uint32_t metadata_size() const { return fields_.metadata_size; }
  bool extended() const { return fields_.layout == MetadataLayout::extended; }  // false without metadata
  PiType type() const { return fields_.type; }
  bool has_pi() const { return fields_.type != PiType::none; }
  GuardType guard() const { return fields_.guard; }
  PiPosition position() const { return fields_.position; }

  unsigned pi_size() const { return fields_.guard == GuardType::guard_16b ? 8 : 16; }
  unsigned pi_offset() const { return pi_offset_; }  // in the metadata of a block
  // Metadata bytes that the guard covers after the data: those before a last-placed PI.
  unsigned guarded_metadata_size() const { return pi_offset_; }

  unsigned storage_tag_size() const { return fields_.storage_tag_size; }  // STS, bits
  unsigned ref_tag_size() const { return ref_tag_size_; }                 // bits
  std::uint64_t storage_tag_max() const { return low_bits(fields_.storage_tag_size); }
  std::uint64_t ref_tag_max() const { return low_bits(ref_tag_size_); }
  std::uint64_t storage_tag_mask() const { return fields_.storage_tag_mask; }

  // The reference tag of the i-th block of a command: counts and rolls over at its own width for types 1
  // and 2, is constant for type 3.
  std::uint64_t ref_tag_at(std::uint64_t initial, std::uint64_t index) const {
    return (fields_.type == PiType::type_3 ? initial : initial + index) & ref_tag_max();
  }

  // The same blocks with the PI seen as plain metadata, and without any metadata: what the device transfers
  // if it or the caller takes care of the PI.
  PiFormat without_pi() const;
  PiFormat without_metadata() const;

  // Distance from one block to the next as the device transfers them.
  std::uint32_t data_stride() const { return data_size() + (extended() ? metadata_size() : 0); }

 private:
  explicit PiFormat(const Fields& fields);
  static constexpr std::uint64_t low_bits(unsigned count) {
    return count >= 64 ? ~0ull : (1ull << count) - 1;
  }

  Fields fields_;
  unsigned ref_tag_size_ = 0;
  unsigned pi_offset_ = 0;
};

}  // namespace nvpi
