// The status of a completed NVMe command. NVM Express Base Specification 2.0, section 3.3.3.2.1.
#pragma once

#include <cstdint>
#include <string_view>

namespace nvpi {

class Status {
 public:
  constexpr Status() = default;  // success
  // As Linux hands it over: SC in bits 7:0, SCT in 10:8, CRD in 12:11, More in 13, DNR in 14.
  constexpr explicit Status(std::uint16_t raw) : raw_(raw & 0x7FFF) {}

  constexpr std::uint16_t raw() const { return raw_; }
  constexpr std::uint16_t code() const { return raw_ & 0x7FF; }  // SCT and SC: what the name depends on
  constexpr unsigned sct() const { return raw_ >> 8 & 7; }
  constexpr unsigned sc() const { return raw_ & 0xFF; }
  constexpr bool more() const { return (raw_ & 0x2000) != 0; }
  constexpr bool dnr() const { return (raw_ & 0x4000) != 0; }  // do not retry
  constexpr bool ok() const { return code() == 0; }
  constexpr bool is_path_error() const { return sct() == 3; }
  // The device found PI that does not fit: guard, application, reference or storage tag.
  constexpr bool is_pi_error() const { return (code() >= 0x282 && code() <= 0x284) || code() == 0x288; }
  constexpr Status with_dnr() const { return Status(raw_ | 0x4000); }

  // The name in the specification; empty for a code that is not in the table.
  std::string_view name() const noexcept;

  constexpr bool operator==(const Status&) const = default;

 private:
  std::uint16_t raw_ = 0;
};

// The codes that this project makes or tells apart. Always with the SCT: 080h is LBA Out of Range, but
// 280h Write Fault.
namespace status {
inline constexpr Status success{0x000};
inline constexpr Status invalid_opcode{0x001};
inline constexpr Status invalid_field{0x002};
inline constexpr Status data_transfer_error{0x004};
inline constexpr Status abort_requested{0x007};
inline constexpr Status invalid_namespace_or_format{0x00B};
inline constexpr Status data_sgl_length_invalid{0x00F};
inline constexpr Status prp_offset_invalid{0x013};
inline constexpr Status namespace_write_protected{0x020};
inline constexpr Status lba_out_of_range{0x080};
inline constexpr Status invalid_protection_information{0x181};
inline constexpr Status write_fault{0x280};
inline constexpr Status unrecovered_read_error{0x281};
inline constexpr Status guard_check_error{0x282};
inline constexpr Status app_tag_check_error{0x283};
inline constexpr Status ref_tag_check_error{0x284};
inline constexpr Status compare_failure{0x285};
inline constexpr Status deallocated_or_unwritten{0x287};
inline constexpr Status storage_tag_check_error{0x288};
}  // namespace status

}  // namespace nvpi
