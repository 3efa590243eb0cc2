#include "nvme/identify.h"

#include <bit>
#include <string_view>

namespace nvpi {
namespace {

// Byte offsets. NVM Command Set Specification 1.0, figures 97 and 100; Base Specification 2.0, figure 276.
namespace at {
constexpr std::size_t nsze = 0, ncap = 8, nuse = 16, nsfeat = 24, nlbaf = 25, flbas = 26, mc = 27,
                      dpc = 28, dps = 29, dlfeat = 33, noiob = 46, mssrl = 74, mcl = 76, msrc = 80,
                      lbaf = 128;
constexpr std::size_t nulbaf = 82;                                   // NVM Command Set 1.1
constexpr std::size_t lbstm = 0, pic = 8, pifa = 9, elbaf = 12;      // CNS 05h
constexpr std::size_t vid = 0, sn = 4, mn = 24, fr = 64, mdts = 77, ver = 80, ctratt = 96, oncs = 520,
                      ocfs = 534, sgls = 536;                                    // CNS 01h
}  // namespace at

constexpr unsigned lba_format_limit = 64;
constexpr std::uint8_t pif_qualified = 3;
constexpr std::uint8_t pic_qpifs = 1 << 3;
constexpr std::uint8_t flbas_extended = 1 << 4;
constexpr std::uint8_t dps_first = 1 << 3;

// Little endian, as all of Identify.
template <typename T>
T load(const IdentifyPage& page, std::size_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(std::uint64_t{value} << 8 | std::to_integer<std::uint64_t>(page[offset + i]));
  }
  return value;
}

template <typename T>
void store(IdentifyPage& page, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    page[offset + i] = static_cast<std::byte>(std::uint64_t{value} >> (8 * i));
  }
}

std::string load_text(const IdentifyPage& page, std::size_t offset, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(page.data()) + offset, size);
  text.erase(text.find_last_not_of(std::string_view(" \0", 2)) + 1);
  return text;
}

void store_text(IdentifyPage& page, std::size_t offset, std::size_t size, std::string_view text) {
  for (std::size_t i = 0; i < size; ++i) {
    page[offset + i] = static_cast<std::byte>(i < text.size() ? text[i] : ' ');
  }
}

// Bits 3:0 and 6:5 of FLBAS; the high ones count only if there are more than 16 formats.
std::uint32_t lba_format_index(std::uint8_t flbas, std::size_t format_count) {
  const std::uint32_t low = flbas & 0xF;
  return format_count <= 16 ? low : (flbas >> 1 & 0x30u) | low;
}

}  // namespace

NamespaceInfo decode_namespace(std::uint32_t nsid, const IdentifyPage& page,
                               const IdentifyPage* extension) noexcept {
  NamespaceInfo info{
      .nsid = nsid,
      .nsze = load<std::uint64_t>(page, at::nsze),
      .ncap = load<std::uint64_t>(page, at::ncap),
      .nuse = load<std::uint64_t>(page, at::nuse),
      .nsfeat = load<std::uint8_t>(page, at::nsfeat),
      .nlbaf = load<std::uint8_t>(page, at::nlbaf),
      .flbas = load<std::uint8_t>(page, at::flbas),
      .mc = load<std::uint8_t>(page, at::mc),
      .dpc = load<std::uint8_t>(page, at::dpc),
      .dps = load<std::uint8_t>(page, at::dps),
      .dlfeat = load<std::uint8_t>(page, at::dlfeat),
      .noiob = load<std::uint16_t>(page, at::noiob),
      .has_extension = extension != nullptr,
      .lbstm = 0,
      .lba_formats = {},
  };
  if (extension != nullptr) {
    info.lbstm = load<std::uint64_t>(*extension, at::lbstm);
    info.pic = load<std::uint8_t>(*extension, at::pic);
    info.pifa = load<std::uint8_t>(*extension, at::pifa);
  }
  const unsigned count = info.nlbaf + 1u + load<std::uint8_t>(page, at::nulbaf);
  for (unsigned i = 0; i < count && i < lba_format_limit; ++i) {
    const auto lbaf = load<std::uint32_t>(page, at::lbaf + 4 * i);
    LbaFormat format{.metadata_size = lbaf & 0xFFFF,
                     .data_size_log2 = static_cast<std::uint8_t>(lbaf >> 16),
                     .relative_performance = static_cast<std::uint8_t>(lbaf >> 24 & 3)};
    if (extension != nullptr) {
      const auto elbaf = load<std::uint32_t>(*extension, at::elbaf + 4 * i);
      format.storage_tag_size = elbaf & 0x7F;
      format.pif = elbaf >> 7 & 3;
      format.qpif = elbaf >> 9 & 0xF;
    }
    info.lba_formats.push_back(format);
  }
  info.lba_format_index = lba_format_index(info.flbas, info.lba_formats.size());
  return info;
}

ControllerInfo decode_controller(const IdentifyPage& page) noexcept {
  return {
      .vid = load<std::uint16_t>(page, at::vid),
      .serial_number = load_text(page, at::sn, 20),
      .model_number = load_text(page, at::mn, 40),
      .firmware_revision = load_text(page, at::fr, 8),
      .mdts = load<std::uint8_t>(page, at::mdts),
      .ver = load<std::uint32_t>(page, at::ver),
      .ctratt = load<std::uint32_t>(page, at::ctratt),
      .sgls = load<std::uint32_t>(page, at::sgls),
      .oncs = load<std::uint16_t>(page, at::oncs),
  };
}

Result<PiFormat> format_of(const NamespaceInfo& info) noexcept {
  const auto refuse = [](std::string_view field, std::uint64_t value, std::string_view rule) {
    return fail({.code = Errc::unsupported_format, .field = field, .rule = rule, .value = value});
  };
  if (info.lba_format_index >= info.lba_formats.size()) {
    return refuse("FLBAS", info.flbas, "must name one of the namespace's LBA formats");
  }
  const LbaFormat& lba_format = info.lba_formats[info.lba_format_index];
  if (lba_format.data_size_log2 < 9 || lba_format.data_size_log2 > 20) {
    return refuse("LBADS", lba_format.data_size_log2, "must be 9 to 20");
  }
  PiFormat::Fields fields{
      .data_size = static_cast<std::uint32_t>(lba_format.data_size()),
      .metadata_size = lba_format.metadata_size,
      .layout = (info.flbas & flbas_extended) != 0 ? MetadataLayout::extended : MetadataLayout::separate,
      .type = static_cast<PiType>(info.dps & 7),
      .position = (info.dps & dps_first) != 0 ? PiPosition::first : PiPosition::last,
      .guard = static_cast<GuardType>(lba_format.pif),
      .storage_tag_size = lba_format.storage_tag_size,
      .storage_tag_mask = info.lbstm,
  };
  if (fields.type != PiType::none && lba_format.pif == pif_qualified) {
    // Never taken for 16b: without the qualifier nobody knows what the guard is.
    if ((info.pic & pic_qpifs) == 0) return refuse("PIF", lba_format.pif, "needs PIC.QPIFS");
    if (lba_format.qpif > 2) return refuse("QPIF", lba_format.qpif, "must be 0, 1 or 2");
    fields.guard = static_cast<GuardType>(lba_format.qpif);
  }
  const auto format = PiFormat::create(fields);
  if (!format) return refuse(format.error().field, format.error().value, format.error().rule);
  return *format;
}

IdentifyNamespacePages encode_namespace(const PiFormat& format, std::uint64_t block_count) noexcept {
  IdentifyNamespacePages pages;
  IdentifyPage& base = pages.base;
  for (const std::size_t field : {at::nsze, at::ncap, at::nuse}) store(base, field, block_count);
  store<std::uint8_t>(base, at::flbas, format.extended() ? flbas_extended : 0);
  store<std::uint8_t>(base, at::mc, 0b11);
  store<std::uint8_t>(base, at::dpc, 0b11111);
  store<std::uint8_t>(base, at::dps,
                      static_cast<std::uint8_t>(static_cast<unsigned>(format.type()) |
                                                (format.position() == PiPosition::first ? dps_first : 0u)));
  // Deallocated blocks read as zeros with a guard of all ones; Write Zeroes may deallocate (DEAC).
  store<std::uint8_t>(base, at::dlfeat, 0b1001);
  store<std::uint16_t>(base, at::mssrl, 0xFFFF);  // Copy: no limits beyond those of its fields
  store<std::uint32_t>(base, at::mcl, 0xFFFF'FFFF);
  store<std::uint8_t>(base, at::msrc, 0xFF);
  store<std::uint32_t>(base, at::lbaf,
                       format.metadata_size() |
                           static_cast<std::uint32_t>(std::countr_zero(format.data_size())) << 16);

  IdentifyPage& extension = pages.extension;
  if (format.has_pi()) {
    store(extension, at::lbstm, format.storage_tag_mask());
    store<std::uint8_t>(extension, at::pic, 1);  // 16b guard with storage tags
    store<std::uint32_t>(extension, at::elbaf,
                         format.storage_tag_size() | static_cast<std::uint32_t>(format.guard()) << 7);
  }
  return pages;
}

IdentifyPage encode_controller(std::uint8_t mdts) noexcept {
  IdentifyPage page{};
  store_text(page, at::sn, 20, "emulated");
  store_text(page, at::mn, 40, "nvpi emulated namespace");
  store_text(page, at::fr, 8, "1");
  store(page, at::mdts, mdts);
  store<std::uint32_t>(page, at::ver, 0x00020000);
  store<std::uint32_t>(page, at::ctratt, 1u << 15);  // ELBAS: extended PI formats
  // Compare, Write Uncorrectable, Dataset Management, Write Zeroes, Verify, Copy (formats 0 and 1).
  store<std::uint16_t>(page, at::oncs, 0b1'1000'1111);
  store<std::uint16_t>(page, at::ocfs, 0b11);
  return page;
}

}  // namespace nvpi
