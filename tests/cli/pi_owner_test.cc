// Who makes and checks the protection information: --pi, --metadata, --prinfo and the tags.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "support/formats.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t namespace_blocks = 64;

const PiFormat::Fields formats[] = {
    {512, 8, separate, type_1, last, guard_16b, 0},
    {512, 8, extended, type_1, last, guard_16b, 0},
    {4096, 64, separate, type_2, first, guard_16b, 0},
    {4096, 64, extended, type_1, last, guard_16b, 0},
    {512, 16, extended, type_3, last, guard_16b, 0},
    {4096, 16, extended, type_1, last, guard_64b, 0},
    {4096, 16, separate, type_1, last, guard_32b, 16},
    {4096, 64, extended, type_2, first, guard_32b, 16},
};

// Data and metadata as the extended layout transfers them.
Bytes interleaved(const PiFormat::Fields& fields, const Bytes& data, const Bytes& metadata) {
  Bytes blocks;
  for (std::size_t i = 0; i < data.size() / fields.data_size; ++i) {
    const Bytes block = slice(data, i * fields.data_size, fields.data_size);
    const Bytes rest = slice(metadata, i * fields.metadata_size, fields.metadata_size);
    blocks.insert(blocks.end(), block.begin(), block.end());
    blocks.insert(blocks.end(), rest.begin(), rest.end());
  }
  return blocks;
}

}  // namespace

TEST_CASE("the tuple on the medium is the one that arithmetic demands") {
  struct Case {
    const char* format;
    const char* tag_options;
    std::size_t metadata_size;
    const char* tuple;
  };
  const Case cases[] = {
      {"ms=8,pi=1", "-a 0xABCD", 8, "8f6dabcd00000010"},
      {"ms=8,pi=2", "-a 0xABCD -r 0x23456789", 8, "8f6dabcd23456789"},
      {"ms=8,pi=1,sts=16", "-a 1 -g 0xBEEF", 8, "8f6d0001beef0010"},
      {"ms=16,pi=1,pif=64", "-a 0xABCD", 16, "3e729f5f6750449cabcd000000000010"},
      {"ms=16,pi=1,pif=64,sts=16", "-a 0xABCD -g 0x1234", 16, "3e729f5f6750449cabcd123400000010"},
  };
  for (const auto& [format, tag_options, metadata_size, tuple] : cases) {
    for (const char* owner : {"host", "device"}) {
      INFO(std::string(format));
      INFO(std::string(owner));
      const Scratch scratch;
      scratch.put("data", counting_bytes(4096));
      scratch.run_ok("write emu:file=disk.img,size=1M," + std::string(format) +
                     " -s 0x10 -d data --pi " + owner + " " + tag_options);
      scratch.run_ok("read emu:file=disk.img -s 16 --blocks 1 -d back -M metadata --pi none");
      CHECK(hex(scratch.get("metadata")) == tuple);
      CHECK(hex(slice(scratch.get("disk.img"), 4096 + (1 << 20) + 16 * metadata_size,
                      metadata_size)) == tuple);
    }
  }
}

TEST_CASE("the tuples of every format are those of an independent reference") {
  for (const PiFormat::Fields& fields : typical_formats()) {
    if (fields.type == none) continue;
    CAPTURE(describe(fields));
    const Scratch scratch;
    const Bytes data = some_bytes(3 * fields.data_size);
    scratch.put("data", data);
    const std::string storage = fields.storage_tag_size > 0 ? " -g 0x123" : "";
    scratch.run_ok("write " + emulated(fields, namespace_blocks) + " -s 9 -a 0x55 -d data" +
                   storage);
    const Bytes image = scratch.get("disk.img");
    const ImageLayout layout{fields, namespace_blocks};
    const bool without_ref_tag = reference_ref_tag_size(fields) == 0;
    const PiTags tags{.app_tag = 0x55,
                      .storage_tag = storage.empty() ? 0u : 0x123u,
                      .initial_ref_tag = fields.type == type_3 || without_ref_tag ? 0u : 9u};
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Bytes block = slice(data, i * fields.data_size, fields.data_size);
      const Bytes metadata = slice(image, layout.metadata_at(9 + i), fields.metadata_size);
      const Bytes tuple = slice(image, layout.pi_at(9 + i), reference_pi_size(fields.guard));
      CHECK(hex(tuple) ==
            hex(reference_tuple(fields, reference_tuple_of(fields, tags, i, block, metadata))));
    }
  }
}

TEST_CASE("blocks that one owner wrote are readable by the others") {
  for (const PiFormat::Fields& fields : formats) {
    for (const char* writer : {"host", "device"}) {
      CAPTURE(describe(fields));
      INFO(std::string(writer));
      const Scratch scratch;
      const Bytes data = some_bytes(10 * fields.data_size);
      scratch.put("data", data);
      scratch.run_ok("write " + emulated(fields, namespace_blocks) + " -s 4 -d data --pi " +
                     writer);
      for (const char* reader : {"--pi host", "--pi device", "-p 8", "-p 15", "-p 0", "-p 4"}) {
        INFO(std::string(reader));
        scratch.run_ok("read emu:file=disk.img -s 4 --blocks 10 -d back " + std::string(reader));
        CHECK(scratch.get("back") == data);
      }
      scratch.run_ok("read emu:file=disk.img -s 4 --blocks 10 -d back -M metadata");
      CHECK(scratch.get("back") == data);
      const ImageLayout layout{fields, namespace_blocks};
      CHECK(scratch.get("metadata") ==
            slice(scratch.get("disk.img"), layout.metadata_at(4), 10 * fields.metadata_size));
    }
  }
}

TEST_CASE("raw blocks are read back as they were written, whatever is in them") {
  for (const PiFormat::Fields& fields : formats) {
    for (const bool in_one_file : {false, true}) {
      if (in_one_file && fields.layout == separate) continue;
      CAPTURE(describe(fields));
      CAPTURE(in_one_file);
      const Scratch scratch;
      const Bytes data = some_bytes(10 * fields.data_size);
      const Bytes metadata = some_bytes(10 * fields.metadata_size);
      const std::string device = emulated(fields, namespace_blocks);
      scratch.put("data", data);
      scratch.put("metadata", metadata);
      scratch.put("raw", interleaved(fields, data, metadata));
      scratch.run_ok("write " + device + " -s 4 --pi none -d " +
                     (in_one_file ? "raw" : "data -M metadata"));
      const Bytes image = scratch.get("disk.img");
      const ImageLayout layout{fields, namespace_blocks};
      CHECK(slice(image, layout.data_at(4), data.size()) == data);
      CHECK(slice(image, layout.metadata_at(4), metadata.size()) == metadata);
      const std::string read = "read emu:file=disk.img -s 4 --blocks 10 --pi none ";
      scratch.run_ok(read + "-d data2 -M metadata2");
      CHECK(scratch.get("data2") == data);
      CHECK(scratch.get("metadata2") == metadata);
      scratch.run_ok(read + "-d raw2");
      CHECK(scratch.get("raw2") == scratch.get(fields.layout == extended ? "raw" : "data"));
    }
  }
}

TEST_CASE("a raw copy of protected blocks is protected blocks") {
  const Scratch scratch;
  const PiFormat::Fields fields{4096, 64, extended, type_1, last, guard_16b, 0};
  scratch.put("data", some_bytes(20 * 4096));
  scratch.run_ok("write " + emulated(fields, namespace_blocks) + " -s 4 -d data -a 7");
  scratch.run_ok("read emu:file=disk.img -s 4 --blocks 20 --pi none -d raw");
  CHECK(scratch.get("raw").size() == 20 * (4096 + 64));
  scratch.run_ok("write emu:file=other.img,ms=64,mset=1,size=1M -s 4 --pi none -d raw");
  for (const char* owner : {"host", "device"}) {
    scratch.run_ok("read emu:file=other.img -s 4 -a 7 --blocks 20 -d back --pi " +
                   std::string(owner));
    CHECK(scratch.get("back") == scratch.get("data"));
  }
}

TEST_CASE("the device checks what the bits of --prinfo say, on writes and on reads") {
  struct Case {
    const char* tuple;
    unsigned bit;  // that asks for the check
    int status;    // then
  };
  // 4096 bytes 00 to FF, LBA 16, application tag 5.
  const Case cases[] = {{"8f6d000500000010", 0, 0},
                        {"8f6e000500000010", 4, 3},
                        {"8f6d000600000010", 2, 4},
                        {"8f6d000500000011", 1, 5}};
  for (const auto& [tuple, bit, status] : cases) {
    const Scratch scratch;
    scratch.put("data", counting_bytes(4096));
    scratch.put("metadata", from_hex(tuple));
    scratch.run_ok("write emu:file=disk.img,size=128Ki -s 16 -d data -M metadata");
    const Bytes image = scratch.get("disk.img");
    for (unsigned prinfo = 0; prinfo < 8; ++prinfo) {
      INFO(std::string(tuple));
      CAPTURE(prinfo);
      std::filesystem::remove(scratch.path("back"));
      const int expected = (prinfo & bit) != 0 ? status : 0;
      const std::string options = " -s 16 --blocks 1 -a 5 -p " + std::to_string(prinfo);
      const Outcome read = scratch.run("read emu:file=disk.img --pi none -d back" + options);
      CHECK(read.status == expected);
      CHECK(scratch.has("back") == (expected == 0));
      const Outcome write = scratch.run("write emu:file=disk.img -d data -M metadata" + options);
      CHECK(write.status == expected);
      if (expected != 0) CHECK(write.err.find("LBA 16") != std::string::npos);
      CHECK(scratch.get("disk.img") == image);
    }
  }
}

TEST_CASE("the application tag is compared under its mask") {
  const Scratch scratch;
  scratch.put("data", some_bytes(4096));
  scratch.run_ok("write emu:file=disk.img,size=1M -d data -a 0x1234");
  struct Case {
    const char* options;
    int status;
  };
  const Case cases[] = {{"", 0},          {"-a 0x1234", 0},           {"-a 0x1235", 4},
                        {"-a 0x12ff", 4}, {"-a 0x12ff -m 0xff00", 0}, {"-a 0xff34 -m 0xff00", 4},
                        {"-a 0 -m 0", 0}, {"-a 0x1235 -p 0", 4},      {"-a 0x1235 --pi device", 4}};
  for (const auto& [options, status] : cases) {
    INFO(std::string(options));
    const Outcome read =
        scratch.run("read emu:file=disk.img --blocks 1 -d back " + std::string(options));
    CHECK_MESSAGE(read.status == status, read.err);
  }
}

TEST_CASE("blocks with escape tags are written only on demand and read as unprotected") {
  const Scratch scratch;
  scratch.put("data", some_bytes(2 * 4096));
  scratch.run_ok("write emu:file=disk.img,size=1M -d data -a 0xffff --allow-unprotected");
  const Outcome read = scratch.run_ok("read emu:file=disk.img --blocks 2 -d back -o json");
  CHECK(nlohmann::json::parse(read.out)["unprotected"] == 2);
  CHECK(scratch.get("back") == scratch.get("data"));
}
