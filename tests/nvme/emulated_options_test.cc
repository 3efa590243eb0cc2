// Emulated namespaces by name: emu:key=value,...
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "nvme/emulated_namespace.h"
#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// Parses and creates, as opening by name does.
Result<std::unique_ptr<EmulatedNamespace>> open(const std::string& text) {
  return EmulatedNamespace::parse(text).and_then(
      [](const EmulatedNamespace::Options& options) { return EmulatedNamespace::create(options); });
}

}  // namespace

TEST_SUITE_BEGIN("emulated options");

TEST_CASE("keys give the format, and what is left out has its default") {
  struct Row {
    const char* text;
    PiFormat::Fields fields;
    std::uint64_t blocks;
  };
  const Row rows[] = {
      {"", {4096, 8, separate, type_1}, 16384},
      {"ds=512,ms=8,pi=1", {512, 8, separate, type_1}, 131072},
      {"size=1M,ds=512,mset=1,pi=2", {512, 8, extended, type_2}, 2048},
      {"size=1M,ms=64,pil=1,pi=3", {4096, 64, separate, type_3, first}, 256},
      {"size=1Mi,ms=16,pif=64,sts=16", {4096, 16, separate, type_1, last, guard_64b, 16}, 256},
      {"size=1m,ms=16,pif=2", {4096, 16, separate, type_1, last, guard_64b}, 256},
      {"size=1M,ms=16,pif=1,sts=0x20", {4096, 16, separate, type_1, last, guard_32b, 32}, 256},
      {"size=1M,ms=16,pif=32,sts=16", {4096, 16, separate, type_1, last, guard_32b, 16}, 256},
      {"size=1M,pif=16", {4096, 8, separate, type_1}, 256},
      {"size=8191,pi=0,ms=0", {4096, 0, separate, none}, 1},
      {"ds=4096,ds=512", {512, 8, separate, type_1}, 131072},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto device = open(row.text);
    REQUIRE(device.has_value());
    const PiFormat& format = (*device)->medium().format();
    CHECK(describe(format) == describe(row.fields));
    CHECK((*device)->medium().block_count() == row.blocks);
  }
}

TEST_CASE("MDTS and the storage tag mask can be set") {
  const auto options = EmulatedNamespace::parse("ms=16,pif=64,sts=16,lbstm=0xFFF0,mdts=3");
  REQUIRE(options.has_value());
  CHECK(options->mdts == 3);
  CHECK(options->format.storage_tag_mask == 0xFFF0);
}

TEST_CASE("what makes no sense is refused with the key and the rule") {
  struct Row {
    const char* text;
    const char* key;
  };
  const Row rows[] = {
      {"colour=blue", "colour"},
      {"ds", "ds"},
      {"ds=", "ds"},
      {"ds=abc", "ds"},
      {"ds=513", "ds"},
      {"ds=0", "ds"},
      {"ds=256", "ds"},
      {"ds=2M", "ds"},
      {"ms=7", "ms"},
      {"ms=65536", "ms"},
      {"ms=0", "ms"},
      {"mset=2", "mset"},
      {"pi=4", "pi"},
      {"pil=2", "pil"},
      {"pif=3", "pif"},
      {"pif=65", "pif"},
      {"pif=8", "pif"},
      {"ms=16,pif=1", "sts"},
      {"sts=33", "sts"},
      {"sts=65", "sts"},
      {"ms=16,pif=64,sts=49", "sts"},
      {"ds=512,ms=16,pif=64", "ds"},
      {"pif=64", "ms"},
      {"mdts=21", "mdts"},
      {"size=0", "size"},
      {"size=4095", "size"},
      {"size=1X", "size"},
      {"size=-1", "size"},
      {"file=", "file"},
      {"=1", ""},
      {"ds=512,,ms=8", ""},
      {"ds=512;ms=8", "ds"},
      {"DS=512", "DS"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto device = open(row.text);
    REQUIRE_FALSE(device.has_value());
    CHECK(device.error().code == Errc::bad_option);
    CHECK(device.error().detail == row.key);
    CHECK_FALSE(device.error().rule.empty());
  }
}

TEST_CASE("an image lasts, brings its own format, and is refused with another") {
  const TemporaryFile file;
  const std::string name = "file=" + file.path();
  const Bytes block(512, std::byte{0x42});
  {
    const auto device = open(name + ",size=1M,ds=512,ms=16,mset=1,pi=2,pil=1");
    REQUIRE(device.has_value());
    REQUIRE((*device)->medium().write_data(2047, block) == 0);
    CHECK(open(name).error().code == Errc::bad_medium);  // in use
  }
  const auto check_again = [&](const std::string& text) {
    const auto device = open(text);
    REQUIRE(device.has_value());
    CHECK(describe((*device)->medium().format()) ==
          describe(PiFormat::Fields{512, 16, extended, type_2, first}));
    Bytes back(512);
    REQUIRE((*device)->medium().read_data(2047, back) == 0);
    CHECK(back == block);
  };
  check_again(name);
  check_again(name + ",mdts=3");
  check_again("size=1M,ds=512,ms=16,mset=1,pi=2,pil=1," + name);
  for (const char* other : {",ds=512", ",size=2M,ds=512,ms=16,mset=1,pi=2,pil=1",
                            ",size=1M,ds=512,ms=16,mset=1,pi=1,pil=1"}) {
    CAPTURE(other);
    CHECK(open(name + other).error().code == Errc::bad_medium);
  }
}

TEST_CASE("a new image is made with the defaults, and sparse") {
  const TemporaryFile file;
  REQUIRE(open("size=1G,file=" + file.path()).has_value());
  CHECK(std::filesystem::file_size(file.path()) > 1u << 30);
  std::filesystem::remove(file.path());
  REQUIRE(open("file=" + file.path()).has_value());
  CHECK(std::filesystem::file_size(file.path()) > 64u << 20);
}

TEST_SUITE_END();
