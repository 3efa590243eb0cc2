// The emulated namespace as a controller: command by command, against NVM Command Set
// Specification 1.0, sections 3.2, 5.2 and 5.3.
#include "nvme/emulated_namespace.h"

#include <doctest/doctest.h>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr PiChecks guard_only{true, false, false, false}, app_only{false, true, false, false},
    storage_only{false, false, true, false}, ref_only{false, false, false, true};

// One command over memory of its own, in the layout that the command transfers.
struct Transfer {
  Transfer(const PiFormat& format, Opcode opcode, std::uint64_t slba, std::uint32_t count,
           const PiControl& pi)
      : memory(transferred_format(format, pi.pract), count),
        command(make_io(opcode, 1, slba, count)) {
    set_pi(command, format, pi);
    const TransferLength length = transfer_length(format, count, pi.pract);
    command.data = memory.blocks().data;
    command.metadata = memory.blocks().metadata;
    command.data_len = static_cast<std::uint32_t>(length.data);
    command.metadata_len = static_cast<std::uint32_t>(length.metadata);
  }
  BlockBuffer memory;
  Command command;
};

struct Rig {
  explicit Rig(const PiFormat::Fields& fields, std::uint8_t mdts = 0)
      : format(make_format(fields)),
        device(make_emulated(format, {.block_count = 4096, .mdts = mdts})) {}

  Status run(const Transfer& transfer) { return carry_out(*device, transfer.command); }

  // Fills every block with its number and metadata of A5, and makes the PI for `tags` on the host.
  void fill(Transfer& transfer, const PiTags& tags) {
    for (std::uint32_t i = 0; i < transfer.memory.count(); ++i) {
      std::fill_n(transfer.memory.data(i).begin(), format.data_size(),
                  static_cast<std::byte>(i + 1));
      const auto metadata = transfer.memory.metadata(i);
      std::fill(metadata.begin(), metadata.end(), std::byte{0xA5});
      if (metadata.empty() || !format.has_pi()) continue;
      const PiTuple tuple =
          reference_tuple_of(format.fields(), tags, i, transfer.memory.data(i), metadata);
      const Bytes bytes = reference_tuple(format.fields(), tuple);
      std::copy(
          bytes.begin(), bytes.end(),
          metadata.begin() + static_cast<std::ptrdiff_t>(reference_pi_offset(format.fields())));
    }
  }
  Status write(std::uint64_t slba, std::uint32_t count, const PiTags& tags, const PiControl& pi) {
    Transfer transfer(format, Opcode::write, slba, count, pi);
    fill(transfer, tags);
    return run(transfer);
  }
  Status read(std::uint64_t slba, std::uint32_t count, const PiControl& pi) {
    return run(Transfer(format, Opcode::read, slba, count, pi));
  }
  Bytes stored_metadata(std::uint64_t lba) {
    Bytes metadata(format.metadata_size());
    REQUIRE(device->medium().read_metadata(lba, metadata) == 0);
    return metadata;
  }

  PiFormat format;
  std::unique_ptr<EmulatedNamespace> device;
};

const PiFormat::Fields with_all_tags{4096, 16, separate, type_2, last, guard_64b, 16};
constexpr PiTags good_tags{.app_tag = 0x1234, .storage_tag = 0xBEEF, .initial_ref_tag = 100};

}  // namespace

TEST_SUITE_BEGIN("emulated namespace");

TEST_CASE("a wrong tag is found by its own check, on write and on read, and by no other") {
  struct Row {
    const char* name;
    PiTags tags;
    PiChecks check;
    std::uint16_t status;
  };
  PiTags app = good_tags, storage = good_tags, ref = good_tags;
  app.app_tag = 0x1235;
  storage.storage_tag = 0xBEEE;
  ref.initial_ref_tag = 101;
  const Row rows[] = {{"app", app, app_only, 0x283},
                      {"storage", storage, storage_only, 0x288},
                      {"ref", ref, ref_only, 0x284}};
  const PiChecks checks[] = {guard_only, app_only, storage_only, ref_only};
  for (const Row& row : rows) {
    for (const PiChecks& check : checks) {
      CAPTURE(row.name);
      Rig rig(with_all_tags);
      const std::uint16_t expected = check == row.check ? row.status : 0;
      // Blocks with one wrong tag: refused on the way in,
      CHECK(rig.write(100, 2, row.tags, {.checks = check, .tags = good_tags}).code() == expected);
      // or stored unchecked and refused on the way out.
      REQUIRE(rig.write(100, 2, row.tags, {.tags = good_tags}).ok());
      CHECK(rig.read(100, 2, {.checks = check, .tags = good_tags}).code() == expected);
      CHECK(rig.read(100, 2, {.tags = good_tags}).ok());
    }
  }
}

TEST_CASE("a changed bit of data or covered metadata is a guard error if the guard is checked") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    if (fields.type == none) continue;
    CAPTURE(describe(fields));
    Rig rig(fields);
    const PiTags tags{.app_tag = 7, .initial_ref_tag = ref_tag_of_lba(rig.format, 50)};
    const PiControl checked{.checks = guard_only, .tags = tags};
    Transfer transfer(rig.format, Opcode::write, 50, 3, checked);
    rig.fill(transfer, tags);
    CHECK(rig.run(transfer).ok());
    CHECK(rig.read(50, 3, checked).ok());
    transfer.memory.data(1)[5] ^= std::byte{1};
    CHECK(rig.run(transfer).code() == 0x282);
    transfer.memory.data(1)[5] ^= std::byte{1};
    if (fields.metadata_size > rig.format.pi_size()) {
      const bool first_pi = fields.position == first;
      transfer.memory.metadata(2)[first_pi ? fields.metadata_size - 1 : 0] ^= std::byte{1};
      CHECK(rig.run(transfer).code() == (first_pi ? 0 : 0x282));  // R12
    }
    Bytes block(fields.data_size);
    REQUIRE(rig.device->medium().write_data(51, block) == 0);
    CHECK(rig.read(50, 3, checked).code() == 0x282);
    CHECK(rig.read(50, 3, {.tags = tags}).ok());
    CHECK(rig.read(50, 1, checked).ok());
  }
}

TEST_CASE("a write that is refused leaves the media as it was") {
  Rig rig({512, 8, extended, type_1});
  const PiTags tags{.initial_ref_tag = 10};
  REQUIRE(rig.write(10, 2, tags, {.checks = {}, .tags = tags}).ok());
  const Bytes before = rig.stored_metadata(10);
  CHECK(rig.write(10, 2, {.app_tag = 1, .initial_ref_tag = 10}, {.checks = {}, .tags = tags})
            .code() == 0x283);
  CHECK(rig.stored_metadata(10) == before);
}

TEST_CASE("the application tag is compared under its mask, the storage tag under the namespace's") {
  PiFormat::Fields fields = with_all_tags;
  fields.storage_tag_mask = 0xFFF0;
  Rig rig(fields);
  REQUIRE(rig.write(100, 1, good_tags, {.tags = good_tags}).ok());
  const auto read = [&](const PiTags& tags, const PiChecks& checks) {
    return rig.read(100, 1, {.checks = checks, .tags = tags}).code();
  };
  CHECK(read({.app_tag = 0x1235, .app_tag_mask = 0xFFFE}, app_only) == 0);
  CHECK(read({.app_tag = 0x1235, .app_tag_mask = 0x0001}, app_only) == 0x283);
  CHECK(read({.app_tag = 0xBEEF, .app_tag_mask = 0}, app_only) == 0);
  CHECK(read({.app_tag = 0x12FF, .app_tag_mask = 0xFF00}, app_only) == 0);
  CHECK(read({.storage_tag = 0xBEE0}, storage_only) == 0);
  CHECK(read({.storage_tag = 0xBEFF}, storage_only) == 0x288);
}

TEST_CASE("escape tags switch all checks off, of types 1 and 2 by the application tag alone") {
  struct Row {
    PiType type;
    std::uint64_t ref_tag;
    bool escapes;
  };
  for (const Row row :
       {Row{type_1, 0, true}, {type_2, 0, true}, {type_3, 0, false}, {type_3, 0xFFFFFFFF, true}}) {
    CAPTURE(static_cast<unsigned>(row.type));
    Rig rig({512, 8, separate, row.type});
    const PiControl checked{.checks = {.ref_tag = row.type != type_3},
                            .tags = {.app_tag = 0x1234, .initial_ref_tag = 20}};
    Transfer transfer(rig.format, Opcode::write, 20, 1, checked);
    const Bytes tuple = reference_tuple(rig.format.fields(), {0xDEAD, 0xFFFF, 0, row.ref_tag});
    std::copy(tuple.begin(), tuple.end(), transfer.memory.pi(0).begin());
    CHECK(rig.run(transfer).code() == (row.escapes ? 0 : 0x282));
    transfer.command.cdw12 &= 0xFFFF;  // no checks
    REQUIRE(rig.run(transfer).ok());
    CHECK(rig.read(20, 1, checked).code() == (row.escapes ? 0 : 0x282));
  }
}

TEST_CASE(
    "PRACT write inserts the PI, keeps the other metadata, and ignores PRCHK and ILBRT's value") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    if (fields.type == none) continue;
    CAPTURE(describe(fields));
    Rig rig(fields);
    const PiTags tags{.app_tag = 0x4321,
                      .storage_tag = 1 & rig.format.storage_tag_max(),
                      .initial_ref_tag = 77 & rig.format.ref_tag_max()};
    // Checks of everything, and for type 1 an initial tag that is not the address.
    Transfer transfer(rig.format, Opcode::write, 60, 2,
                      {.pract = true, .checks = {}, .tags = tags});
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::fill_n(transfer.memory.data(i).begin(), fields.data_size, std::byte{0x3D});
    }
    CHECK(rig.run(transfer).ok());
    const bool hidden = fields.metadata_size == rig.format.pi_size();
    Bytes metadata(fields.metadata_size, hidden ? std::byte{0} : std::byte{0xEE});
    const Bytes data(fields.data_size, std::byte{0x3D});
    for (std::uint32_t i = 0; i < 2; ++i) {
      const Bytes tuple =
          reference_tuple(fields, reference_tuple_of(fields, tags, i, data, metadata));
      std::copy(tuple.begin(), tuple.end(),
                metadata.begin() + static_cast<std::ptrdiff_t>(reference_pi_offset(fields)));
      CHECK(hex(rig.stored_metadata(60 + i)) == hex(metadata));
    }
  }
}

TEST_CASE("PRACT read checks, strips PI that fills the metadata and passes other PI unchanged") {
  for (const std::uint32_t ms : {8u, 16u, 64u}) {
    for (const MetadataLayout layout : {separate, extended}) {
      CAPTURE(ms);
      Rig rig({4096, ms, layout, type_1});
      const PiTags tags{.app_tag = 9, .initial_ref_tag = 30};
      REQUIRE(rig.write(30, 2, tags, {.checks = {}, .tags = tags}).ok());
      Transfer transfer(rig.format, Opcode::read, 30, 2,
                        {.pract = true, .checks = {}, .tags = tags});
      CHECK(transfer.command.data_len == 2 * (4096 + (layout == extended && ms > 8 ? ms : 0)));
      REQUIRE(rig.run(transfer).ok());
      for (std::uint32_t i = 0; i < 2; ++i) {
        CHECK(all_equal(transfer.memory.data(i), static_cast<std::uint8_t>(i + 1)));
        if (ms > 8) CHECK(hex(transfer.memory.metadata(i)) == hex(rig.stored_metadata(30 + i)));
      }
      Transfer wrong(rig.format, Opcode::read, 30, 2,
                     {.pract = true, .checks = {}, .tags = {.app_tag = 8, .initial_ref_tag = 30}});
      CHECK(rig.run(wrong).code() == 0x283);
      CHECK(all_equal(wrong.memory.raw_data(), 0xEE));  // nothing is transferred
    }
  }
}

TEST_CASE("an unwritten block reads as zeros with PI of all ones, which no check minds") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    CAPTURE(describe(fields));
    Rig rig(fields);
    const PiControl pi{
        .checks = {.ref_tag = fields.type != type_3},
        .tags = {.app_tag = 0x1234, .initial_ref_tag = 5 & rig.format.ref_tag_max()}};
    Transfer transfer(rig.format, Opcode::read, 5, 2, pi);
    REQUIRE(rig.run(transfer).ok());
    for (std::uint32_t i = 0; i < 2; ++i) {
      CHECK(all_equal(transfer.memory.data(i), 0));
      if (fields.type == none) {
        CHECK(all_equal(transfer.memory.metadata(i), 0));
        continue;
      }
      Bytes expected(fields.metadata_size);
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(reference_pi_offset(fields)),
                  rig.format.pi_size(), std::byte{0xFF});
      CHECK(hex(transfer.memory.metadata(i)) == hex(expected));
    }
  }
}

TEST_CASE("R18: the expected reference tag rolls over at its width") {
  Rig rig({512, 8, separate, type_2});
  const PiTags tags{.initial_ref_tag = 0xFFFFFFFE};
  CHECK(rig.write(100, 4, tags, {.checks = {}, .tags = tags}).ok());
  CHECK(rig.read(100, 4, {.checks = {}, .tags = tags}).ok());
  CHECK(rig.read(102, 2, {.checks = {}, .tags = {.initial_ref_tag = 0}}).ok());
}

TEST_SUITE_END();
