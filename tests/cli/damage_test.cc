// Damage on the medium is found, named and kept out of the output.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t namespace_blocks = 64;
constexpr std::uint64_t start = 5, count = 20, bad = 12;

struct Field {
  std::size_t offset, size;  // in the tuple, in bytes
};

struct Case {
  PiFormat::Fields fields;
  Field field;
  int status;
  const char* tag;
  const char* device_status;
  const char* options;  // of both the write and the read
};

const PiFormat::Fields plain{4096, 8, separate, type_1, last, guard_16b, 0};
const PiFormat::Fields small{512, 16, extended, type_1, last, guard_16b, 0};
const PiFormat::Fields tagged{4096, 8, separate, type_1, last, guard_16b, 16};
const PiFormat::Fields wide{4096, 16, separate, type_1, last, guard_32b, 32};
const PiFormat::Fields widest{4096, 64, extended, type_2, first, guard_64b, 0};

const Case cases[] = {
    {plain, {0, 2}, 3, "guard", "Guard Check Error", ""},
    {plain, {2, 2}, 4, "application tag", "Application Tag Check Error", "-a 0x1234"},
    {plain, {4, 4}, 5, "reference tag", "Reference Tag Check Error", ""},
    {small, {0, 2}, 3, "guard", "Guard Check Error", ""},
    {small, {4, 4}, 5, "reference tag", "Reference Tag Check Error", "-a 9"},
    {tagged, {4, 2}, 6, "storage tag", "Storage Tag Check Error", "-g 0xBEEF"},
    {wide, {0, 4}, 3, "guard", "Guard Check Error", ""},
    {wide, {6, 4}, 6, "storage tag", "Storage Tag Check Error", "-g 0xCAFE1234"},
    {wide, {10, 6}, 5, "reference tag", "Reference Tag Check Error", "-g 0xCAFE1234"},
    {widest, {0, 8}, 3, "guard", "Guard Check Error", ""},
    {widest, {10, 6}, 5, "reference tag", "Reference Tag Check Error", ""},
};

void flip(const Scratch& scratch, std::size_t offset) {
  Bytes image = scratch.get("disk.img");
  image.at(offset) ^= std::byte{0x01};
  scratch.put("disk.img", image);
}

std::string range() {
  return " -s " + std::to_string(start) + " --blocks " + std::to_string(count);
}

// disk.img with `count` protected blocks from `start`.
void write_image(const Scratch& scratch, const PiFormat::Fields& fields,
                 const std::string& options) {
  scratch.put("data", some_bytes(count * fields.data_size));
  scratch.run_ok("write " + emulated(fields, namespace_blocks) + " -s " + std::to_string(start) +
                 " -d data " + options);
}

std::string value_at(const Scratch& scratch, std::size_t offset, std::size_t size) {
  return "0x" + hex(slice(scratch.get("disk.img"), offset, size));
}

void check_mismatch(const nlohmann::json& mismatch, const Case& c, const std::string& stored,
                    const std::string& computed) {
  CHECK(mismatch["lba"] == bad);
  CHECK(mismatch["block"] == bad - start);
  CHECK(mismatch["byte_offset"] == (bad - start) * c.fields.data_size);
  CHECK(mismatch["tag"] == c.tag);
  CHECK(mismatch["stored"] == stored);
  CHECK(mismatch["computed"] == computed);
}

}  // namespace

TEST_CASE("damage of each tag has its exit status and names block, tag and both values") {
  for (const Case& c : cases) {
    for (const bool by_host : {false, true}) {
      INFO(std::string(c.tag));
      CAPTURE(c.fields.data_size);
      CAPTURE(by_host);
      const Scratch scratch;
      write_image(scratch, c.fields, c.options);
      const ImageLayout layout{c.fields, namespace_blocks};
      const std::size_t offset = layout.pi_at(bad) + c.field.offset;
      const std::string computed = value_at(scratch, offset, c.field.size);
      flip(scratch, offset + c.field.size - 1);
      const std::string stored = value_at(scratch, offset, c.field.size);

      const std::string line =
          "read emu:file=disk.img -d back" + range() + " " + c.options + (by_host ? " -p 0" : "");
      const Outcome text = scratch.run(line);
      CHECK(text.status == c.status);
      CHECK(text.out.empty());
      const std::string lba = "LBA " + std::to_string(bad) + " (block 7, byte " +
                              std::to_string(7 * c.fields.data_size) + "): ";
      const std::string finding =
          lba + c.tag + " stored " + stored + ", computed " + computed + "; tuple ";
      CHECK_MESSAGE(text.err.find(finding) != std::string::npos, text.err, finding);
      if (by_host) {
        CHECK(text.err.starts_with("nvpi: 1 block does not match its protection information\n"));
        const Bytes good = slice(scratch.get("data"), 0, (bad - start) * c.fields.data_size);
        CHECK(scratch.get("back") == good);
      } else {
        CHECK_MESSAGE(text.err.find(c.device_status) != std::string::npos, text.err);
      }

      const Outcome json_run = scratch.run(line + " -o json");
      CHECK(json_run.status == c.status);
      CHECK(json_run.err.empty());
      const auto json = nlohmann::json::parse(json_run.out);
      CHECK(json["exit_status"] == c.status);
      REQUIRE(json["mismatches"].size() == 1);
      check_mismatch(json["mismatches"][0], c, stored, computed);
    }
  }
}

TEST_CASE("damaged data is found by the guard, for every owner that checks") {
  for (const PiFormat::Fields& fields : {plain, small, tagged, wide, widest}) {
    CAPTURE(fields.data_size);
    CAPTURE(fields.metadata_size);
    const Scratch scratch;
    write_image(scratch, fields, "");
    flip(scratch, ImageLayout{fields, namespace_blocks}.data_at(bad) + 100);
    for (const char* options : {"", "-p 0", "-p 7", "-p 4", "--pi device", "--pi none -p 4"}) {
      INFO(std::string(options));
      scratch.put("back", std::string_view("old"));
      const Outcome read = scratch.run("read emu:file=disk.img -d back" + range() + " " + options);
      CHECK(read.status == 3);
      CHECK_MESSAGE(read.err.find("LBA 12") != std::string::npos, read.err);
    }
    scratch.run_ok("read emu:file=disk.img -d back --pi none" + range());
    // Blocks beside it are readable.
    scratch.run_ok("read emu:file=disk.img -d back -s 5 --blocks 7");
    scratch.run_ok("read emu:file=disk.img -d back -s 13 --blocks 12");
  }
}

TEST_CASE("guarded metadata in front of the tuple is protected like data") {
  const PiFormat::Fields fields{4096, 64, separate, type_1, last, guard_16b, 0};
  const Scratch scratch;
  write_image(scratch, fields, "");
  flip(scratch, ImageLayout{fields, namespace_blocks}.metadata_at(bad) + 3);
  CHECK(scratch.run("read emu:file=disk.img -d back" + range()).status == 3);
  CHECK(scratch.run("read emu:file=disk.img -d back -p 0" + range()).status == 3);
}

TEST_CASE("all bad blocks are listed, in order, and the output ends before the first") {
  for (const char* mdts : {"0", "1"}) {
    INFO(std::string(mdts));
    const Scratch scratch;
    write_image(scratch, plain, "");
    const ImageLayout layout{plain, namespace_blocks};
    for (const std::uint64_t lba : {20u, 8u, 24u, 9u}) flip(scratch, layout.data_at(lba));
    flip(scratch, layout.pi_at(15) + 7);
    const std::string line =
        "read emu:file=disk.img,mdts=" + std::string(mdts) + " -d back -p 0" + range();
    const Outcome text = scratch.run(line);
    CHECK(text.status == 3);
    CHECK(text.err.starts_with("nvpi: 5 blocks do not match their protection information\n"));
    CHECK(scratch.get("back") == slice(scratch.get("data"), 0, 3 * 4096));
    const auto json = nlohmann::json::parse(scratch.run(line + " -o json").out);
    const std::uint64_t expected[] = {8, 9, 15, 20, 24};
    REQUIRE(json["mismatches"].size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(json["mismatches"][i]["lba"] == expected[i]);
      CHECK(json["mismatches"][i]["tag"] == (expected[i] == 15 ? "reference tag" : "guard"));
      CHECK(text.err.find("LBA " + std::to_string(expected[i]) + " ") != std::string::npos);
    }
  }
}

TEST_CASE("a report of bad blocks is complete, or says where the read stopped") {
  const Scratch scratch;
  constexpr std::uint64_t blocks = 5120;  // 20 MiB
  scratch.put("data", some_bytes(blocks * 4096));
  scratch.run_ok("write " + emulated(plain, blocks) + " -d data");
  const ImageLayout layout{plain, blocks};
  for (const std::uint64_t lba : {3u, 4000u}) flip(scratch, layout.data_at(lba));
  const Outcome read = scratch.run("read emu:file=disk.img -d back -p 0");
  CHECK(read.status == 3);
  CHECK(read.err.find("LBA 3 ") != std::string::npos);
  const bool complete = read.err.find("LBA 4000 ") != std::string::npos;
  CHECK_MESSAGE((complete || read.err.find("stopped") != std::string::npos), read.err);
  CHECK(scratch.get("back") == slice(scratch.get("data"), 0, 3 * 4096));
}

TEST_CASE("the byte in a finding is the place in the file, also with interleaved metadata") {
  const Scratch scratch;
  write_image(scratch, small, "");
  flip(scratch, ImageLayout{small, namespace_blocks}.data_at(bad));
  const std::string line = "read emu:file=disk.img -d back --pi none -p 4 -o json" + range();
  const auto json = nlohmann::json::parse(scratch.run(line).out);
  REQUIRE(json["mismatches"].size() == 1);
  CHECK(json["mismatches"][0]["byte_offset"] == (bad - start) * (512 + 16));
}

TEST_CASE("very many bad blocks are counted in text and listed in JSON") {
  const Scratch scratch;
  write_image(scratch, plain, "");
  const ImageLayout layout{plain, namespace_blocks};
  for (std::uint64_t lba = start; lba < start + count; ++lba) flip(scratch, layout.data_at(lba));
  const Outcome text = scratch.run("read emu:file=disk.img -d back -p 0" + range());
  CHECK(text.err.starts_with("nvpi: 20 blocks do not match"));
  CHECK_MESSAGE(text.err.ends_with("... and 4 more; -o json lists them\n"), text.err);
  CHECK_FALSE(scratch.has("back"));
  const Outcome json = scratch.run("read emu:file=disk.img -d back -o json -p 0" + range());
  CHECK(nlohmann::json::parse(json.out)["mismatches"].size() == 20);
}

TEST_CASE("blocks that were never written read as zeros and are told as unprotected") {
  const Scratch scratch;
  scratch.put("data", some_bytes(2 * 4096));
  scratch.run_ok("write emu:file=disk.img,size=64Ki -s 1 -d data");
  const Outcome text = scratch.run_ok("read emu:file=disk.img -d back");
  CHECK(text.err == "read 16 blocks at LBA 0: 2 verified, 14 unprotected\n");
  const auto json =
      nlohmann::json::parse(scratch.run_ok("read emu:file=disk.img -d b -o json").out);
  CHECK(json["verified"] == 2);
  CHECK(json["unprotected"] == 14);
  CHECK(all_equal(slice(scratch.get("back"), 3 * 4096, 13 * 4096), 0));
}
