// Identify data structures: decoding what a device says, and encoding what the emulated namespace says.
// NVM Express Base Specification 2.0, section 5.17; NVM Command Set Specification 1.0, section 4.1.5.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nvme/error.h"
#include "pi/format.h"

namespace nvpi {

using IdentifyPage = std::array<std::byte, 4096>;

// CNS values: which structure is asked for.
enum class Cns : std::uint8_t {
  identify_namespace = 0x00,
  identify_controller = 0x01,
  identify_namespace_csi = 0x05,  // of the I/O command set CSI; 0 is the NVM command set
};

// One entry of the list of LBA formats, with its extension (ELBAF).
struct LbaFormat {
  std::uint32_t metadata_size = 0;  // bytes
  std::uint8_t data_size_log2 = 0;  // LBADS; 0: not available
  std::uint8_t relative_performance = 0;
  std::uint8_t storage_tag_size = 0;  // bits
  std::uint8_t pif = 0;               // as stored
  std::uint8_t qpif = 0;              // as stored

  std::uint64_t data_size() const { return 1ull << (data_size_log2 & 63); }  // bytes
};

struct NamespaceInfo {
  std::uint32_t nsid = 0;
  std::uint64_t nsze = 0, ncap = 0, nuse = 0;  // blocks
  std::uint8_t nsfeat = 0, nlbaf = 0, flbas = 0, mc = 0, dpc = 0, dps = 0, dlfeat = 0;
  std::uint16_t noiob = 0;
  bool has_extension = false;  // the device answered CNS 05h
  std::uint64_t lbstm = 0;
  std::uint8_t pic = 0, pifa = 0;
  std::vector<LbaFormat> lba_formats;
  std::uint32_t lba_format_index = 0;  // in use
};

struct ControllerInfo {
  std::uint16_t vid = 0;
  std::string serial_number, model_number, firmware_revision;  // without trailing blanks
  std::uint8_t mdts = 0;                                       // as stored
  std::uint32_t ver = 0, ctratt = 0, sgls = 0;
  std::uint16_t oncs = 0;

  // MDTS in bytes, 0 for no limit. User space cannot read CAP.MPSMIN, so its smallest value is assumed.
  std::uint64_t max_transfer_size() const { return mdts == 0 ? 0 : 4096ull << mdts; }
  // CTRATT.MEM: interleaved metadata does not count against MDTS.
  bool mdts_excludes_metadata() const { return (ctratt & 1u << 16) != 0; }
};

// `extension` is the CNS 05h page, null if the device has none.
NamespaceInfo decode_namespace(std::uint32_t nsid, const IdentifyPage& page,
                               const IdentifyPage* extension) noexcept;
ControllerInfo decode_controller(const IdentifyPage& page) noexcept;

// The format in use, checked. Fails with Errc::unsupported_format.
Result<PiFormat> format_of(const NamespaceInfo& info) noexcept;

// The pages of a namespace that has this one format.
struct IdentifyNamespacePages {
  IdentifyPage base{};
  IdentifyPage extension{};
};
IdentifyNamespacePages encode_namespace(const PiFormat& format, std::uint64_t block_count) noexcept;
IdentifyPage encode_controller(std::uint8_t mdts) noexcept;

}  // namespace nvpi
