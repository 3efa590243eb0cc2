// What id-ns says about a namespace, to people and to scripts.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

using Json = nlohmann::json;

struct Case {
  const char* format;
  unsigned flbas, dps, metadata_size, data_size_log2, sts, pif;
  Words words;
};

const Case cases[] = {
    {"size=1M",
     0,
     1,
     8,
     12,
     0,
     0,
     {"256 blocks", "4096 bytes data", "8 bytes metadata", "separate", "type 1", "16b guard",
      "last 8 bytes", "reference tag of 32 bits"}},
    {"size=1M,ds=512,ms=16,mset=1,pi=3,pil=1",
     0x10,
     3 | 8,
     16,
     9,
     0,
     0,
     {"2048 blocks", "512 bytes data", "16 bytes metadata", "extended", "type 3", "first 8 bytes"}},
    {"size=1M,ms=16,pi=1,pif=64", 0, 1, 16, 12, 0, 2, {"64b guard", "last 16 bytes", "48 bits"}},
    {"size=1M,ms=64,mset=1,pi=2,pif=32,sts=32",
     0x10,
     2,
     64,
     12,
     32,
     1,
     {"32b guard", "storage tag of 32 bits", "reference tag of 48 bits", "type 2"}},
    {"size=1M,ms=0,pi=0", 0, 0, 0, 12, 0, 0, {"no metadata", "no protection information"}},
};

}  // namespace

TEST_CASE("id-ns tells geometry and format, with nvme-cli's keys in JSON") {
  for (const Case& c : cases) {
    INFO(std::string(c.format));
    const Scratch scratch;
    const std::string line = "id-ns emu:" + std::string(c.format);
    const Outcome text = scratch.run_ok(line);
    CHECK(text.err.empty());
    for (const std::string& word : c.words) {
      CHECK_MESSAGE(text.out.find(word) != std::string::npos, word, " is not in\n", text.out);
    }
    const Outcome json_run = scratch.run_ok(line + " -o json");
    CHECK(json_run.err.empty());
    const Json json = Json::parse(json_run.out);
    const std::uint64_t blocks = (1u << 20) >> c.data_size_log2;
    CHECK(json["nsze"] == blocks);
    CHECK(json["ncap"] == blocks);
    CHECK(json["nuse"].is_number());
    CHECK(json["nsfeat"].is_number());
    CHECK(json["nlbaf"].is_number());
    CHECK(json["mc"].is_number());
    CHECK(json["dpc"].is_number());
    CHECK(json["flbas"] == c.flbas);
    CHECK(json["dps"] == c.dps);
    REQUIRE(json["lbafs"].size() == json["nlbaf"].get<std::size_t>() + 1);
    const std::size_t used = json["flbas"].get<unsigned>() & 0xF;
    CHECK(json["lbafs"][used] == Json{{"lbaf", used},
                                      {"ms", c.metadata_size},
                                      {"ds", c.data_size_log2},
                                      {"rp", 0},
                                      {"in_use", 1}});
    REQUIRE(json["elbafs"].size() == json["lbafs"].size());
    CHECK(json["elbafs"][used]["sts"] == c.sts);
    CHECK(json["elbafs"][used]["pif"] == c.pif);
    CHECK(json["elbafs"][used]["qpif"].is_number());
    for (const char* key : {"lbstm", "pic", "pifa"}) CHECK(json[key].is_number());
    if (c.sts == 32) CHECK((json["lbstm"].get<std::uint64_t>() & 0xFFFFFFFF) == 0xFFFFFFFF);
  }
}

TEST_CASE("id-ns of an image tells the image's format and changes nothing") {
  const Scratch scratch;
  scratch.put("data", counting_bytes(512));
  scratch.run_ok("write emu:file=disk.img,ds=512,ms=16,mset=1,pi=2,size=1M -d data");
  const Bytes image = scratch.get("disk.img");
  const Json json = Json::parse(scratch.run_ok("id-ns emu:file=disk.img -o json").out);
  CHECK(json["nsze"] == 2048);
  CHECK(json["flbas"] == 0x10);
  CHECK(json["dps"] == 2);
  CHECK(json["nvpi"]["metadata"] == "extended");
  CHECK(scratch.get("disk.img") == image);
}

TEST_CASE("output that could not be written is a failure") {
  const Scratch scratch;
  for (const char* line : {"id-ns emu:size=1M", "id-ns emu:size=1M -o json",
                           "race emu:size=1M --writes 1", "read emu:size=1M -d back -o json"}) {
    INFO(std::string(line));
    const Outcome outcome = scratch.run(line, {.stdout_file = "/dev/full"});
    CHECK(outcome.status == 8);
    CHECK_MESSAGE(outcome.err.find("No space left") != std::string::npos, outcome.err);
  }
}
