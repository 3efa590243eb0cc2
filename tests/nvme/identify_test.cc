// Identify pages as bytes. NVM Command Set Specification 1.0, section 4.1.5.
#include "nvme/identify.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

void put(IdentifyPage& page, std::size_t at, std::initializer_list<unsigned> bytes) {
  for (const unsigned b : bytes) page[at++] = static_cast<std::byte>(b);
}

// 64 formats whose metadata size is their index, on 4096-byte blocks.
IdentifyPage page_of_64_formats() {
  IdentifyPage page{};
  put(page, 25, {63});
  for (unsigned i = 0; i < 64; ++i) put(page, 128 + 4 * i, {i, 0, 12, 0});
  return page;
}

// A namespace of one format with PI of this PIF and QPIF.
Result<PiFormat> qualified(unsigned pif, unsigned qpif, bool qpifs) {
  IdentifyPage page{}, extension{};
  put(page, 29, {1});
  put(page, 128, {16, 0, 12, 0});
  put(extension, 8, {qpifs ? 8u : 0u});
  const unsigned elbaf = 16 | pif << 7 | qpif << 9;  // STS 16
  put(extension, 12, {elbaf & 0xFF, elbaf >> 8});
  return format_of(decode_namespace(1, page, &extension));
}

}  // namespace

TEST_SUITE_BEGIN("identify");

TEST_CASE("R10: the format index is in bits 3:0 and 6:5 of FLBAS, and bit 4 is the layout") {
  struct Row {
    unsigned flbas, index;
    bool extended;
  };
  const Row rows[] = {{0x00, 0, false},  {0x11, 1, true},  {0x0F, 15, false}, {0x20, 16, false},
                      {0x21, 17, false}, {0x31, 17, true}, {0x6F, 63, false}, {0x7F, 63, true},
                      {0x40, 32, false}, {0xE2, 50, false}};
  for (const Row& row : rows) {
    CAPTURE(row.flbas);
    IdentifyPage page = page_of_64_formats();
    put(page, 26, {row.flbas});
    const NamespaceInfo info = decode_namespace(1, page, nullptr);
    CHECK(info.lba_format_index == row.index);
    CHECK(info.lba_formats.size() == 64);
    const auto format = format_of(info);
    REQUIRE(format.has_value());
    CHECK(format->metadata_size() == row.index);
    CHECK(format->extended() == (row.extended && row.index > 0));
  }
}

TEST_CASE("R10: with at most 16 formats the high index bits are ignored") {
  for (unsigned flbas = 0; flbas < 256; ++flbas) {
    IdentifyPage page = page_of_64_formats();
    put(page, 25, {15, flbas});
    CAPTURE(flbas);
    CHECK(decode_namespace(1, page, nullptr).lba_format_index == (flbas & 15));
    put(page, 25, {16, flbas});
    CHECK(decode_namespace(1, page, nullptr).lba_format_index ==
          ((flbas & 15) | (flbas >> 1 & 0x30)));
  }
}

TEST_CASE("an index without a format is refused") {
  IdentifyPage page = page_of_64_formats();
  put(page, 25, {3, 0x04});
  const auto format = format_of(decode_namespace(1, page, nullptr));
  REQUIRE_FALSE(format.has_value());
  CHECK(format.error().code == Errc::unsupported_format);
  CHECK(std::string(format.error().field) == "FLBAS");
}

TEST_CASE("R11: every field of the namespace pages is little endian and at its place") {
  IdentifyPage page{}, extension{};
  put(page, 0, {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08});
  put(page, 8, {0x11, 0, 0, 0, 0, 0, 0, 0x18});
  put(page, 16, {0x21, 0, 0, 0, 0, 0, 0, 0x28});
  put(page, 24, {0x1F, 1, 0x11, 3, 0x1B, 0x09});
  put(page, 33, {0x11});
  put(page, 46, {0x34, 0x12});
  put(page, 82, {2});  // NULBAF: two more formats
  put(page, 128, {8, 0, 9, 2});
  put(page, 132, {0x00, 0x08, 12, 1});  // 0800h bytes of metadata, not 8
  put(extension, 0, {0xF0, 0xFF, 0, 0, 0, 0, 0, 0x80});
  put(extension, 8, {0x09, 0x02});
  put(extension, 16, {0x12 | 0x80, 0x00});  // format 1: STS 18, PIF 1
  put(extension, 20, {0x00, 0x05});         // format 2: PIF 2, QPIF 2
  const NamespaceInfo info = decode_namespace(3, page, &extension);
  CHECK(info.nsid == 3);
  CHECK(info.nsze == 0x0807060504030201);
  CHECK(info.ncap == 0x1800000000000011);
  CHECK(info.nuse == 0x2800000000000021);
  CHECK(info.nsfeat == 0x1F);
  CHECK(info.nlbaf == 1);
  CHECK(info.flbas == 0x11);
  CHECK(info.mc == 3);
  CHECK(info.dpc == 0x1B);
  CHECK(info.dps == 9);
  CHECK(info.dlfeat == 0x11);
  CHECK(info.noiob == 0x1234);
  CHECK(info.has_extension);
  CHECK(info.lbstm == 0x800000000000FFF0);
  CHECK(info.pic == 9);
  CHECK(info.pifa == 2);
  REQUIRE(info.lba_formats.size() == 4);
  CHECK(info.lba_formats[0].metadata_size == 8);
  CHECK(info.lba_formats[0].data_size() == 512);
  CHECK(info.lba_formats[0].relative_performance == 2);
  CHECK(info.lba_formats[1].metadata_size == 0x800);
  CHECK(info.lba_formats[1].data_size() == 4096);
  CHECK(info.lba_formats[1].storage_tag_size == 18);
  CHECK(info.lba_formats[1].pif == 1);
  CHECK(info.lba_formats[2].pif == 2);
  CHECK(info.lba_formats[2].qpif == 2);
}

TEST_CASE("the controller page: MDTS, CTRATT.MEM, and texts without their padding") {
  IdentifyPage page{};
  put(page, 0, {0x36, 0x1B});
  const std::string serial = "nvpi0001            ", model = "A drive";
  for (std::size_t i = 0; i < serial.size(); ++i) page[4 + i] = static_cast<std::byte>(serial[i]);
  for (std::size_t i = 0; i < model.size(); ++i) page[24 + i] = static_cast<std::byte>(model[i]);
  put(page, 77, {5});
  put(page, 80, {0x00, 0x04, 0x01, 0x00});
  put(page, 96, {0x00, 0x80, 0x01, 0x00});
  put(page, 520, {0x5F, 0x01});
  put(page, 536, {0x01, 0x00, 0x0F, 0x00});
  const ControllerInfo info = decode_controller(page);
  CHECK(info.vid == 0x1B36);
  CHECK(info.serial_number == "nvpi0001");
  CHECK(info.model_number == "A drive");
  CHECK(info.firmware_revision.empty());
  CHECK(info.mdts == 5);
  CHECK(info.max_transfer_size() == 131072);
  CHECK(info.ver == 0x00010400);
  CHECK(info.ctratt == 0x00018000);
  CHECK(info.mdts_excludes_metadata());
  CHECK(info.oncs == 0x015F);
  CHECK(info.sgls == 0x000F0001);
  put(page, 77, {0});
  CHECK(decode_controller(page).max_transfer_size() == 0);
}

TEST_CASE("R24: PIF 3 means QPIF, and is never taken for 16b") {
  struct Row {
    unsigned pif, qpif;
    bool qpifs;
    std::optional<GuardType> guard;
    const char* field;
  };
  const Row rows[] = {
      {0, 0, false, GuardType::guard_16b, ""},
      {1, 0, false, GuardType::guard_32b, ""},
      {2, 0, false, GuardType::guard_64b, ""},
      {3, 0, false, {}, "PIF"},
      {3, 2, false, {}, "PIF"},
      {3, 0, true, GuardType::guard_16b, ""},
      {3, 1, true, GuardType::guard_32b, ""},
      {3, 2, true, GuardType::guard_64b, ""},
      {3, 3, true, {}, "QPIF"},
      {3, 15, true, {}, "QPIF"},
      {2, 1, true, GuardType::guard_64b, ""},  // QPIF counts only if PIF says so
  };
  for (const Row& row : rows) {
    CAPTURE(row.pif);
    CAPTURE(row.qpif);
    CAPTURE(row.qpifs);
    const auto format = qualified(row.pif, row.qpif, row.qpifs);
    REQUIRE(format.has_value() == row.guard.has_value());
    if (format) {
      CHECK(format->guard() == *row.guard);
    } else {
      CHECK(std::string(format.error().field) == row.field);
    }
  }
}

TEST_CASE("R14: DPS bit 3 set means that the PI comes first") {
  for (const unsigned dps : {0x01u, 0x09u, 0x02u, 0x0Au, 0x03u, 0x0Bu}) {
    IdentifyPage page{};
    put(page, 29, {dps});
    put(page, 128, {64, 0, 12, 0});
    CAPTURE(dps);
    const auto format = format_of(decode_namespace(1, page, nullptr));
    REQUIRE(format.has_value());
    CHECK(static_cast<unsigned>(format->type()) == (dps & 7));
    CHECK(format->pi_offset() == ((dps & 8) != 0 ? 0 : 56));
  }
}

TEST_CASE("what a page says of a format is what it was made from") {
  Random random(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t blocks = random();
    PiFormat::Fields fields = random_fields(random);
    if (round < static_cast<int>(typical_formats().size())) {
      fields = typical_formats()[static_cast<std::size_t>(round)];
    }
    const PiFormat format = make_format(fields);
    CAPTURE(describe(format));
    const IdentifyNamespacePages pages = encode_namespace(format, blocks);
    const NamespaceInfo info = decode_namespace(1, pages.base, &pages.extension);
    REQUIRE(info.nsze == blocks);
    const auto decoded = format_of(info);
    REQUIRE(decoded.has_value());
    REQUIRE(decoded->data_size() == format.data_size());
    REQUIRE(decoded->metadata_size() == format.metadata_size());
    REQUIRE(decoded->extended() == format.extended());
    REQUIRE(decoded->type() == format.type());
    if (!format.has_pi()) continue;
    REQUIRE(decoded->position() == format.position());
    REQUIRE(decoded->guard() == format.guard());
    REQUIRE(decoded->storage_tag_size() == format.storage_tag_size());
    REQUIRE(decoded->storage_tag_mask() == format.storage_tag_mask());
  }
}

TEST_SUITE_END();
