// Slips that would cost data.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// disk.img with 8 written blocks of 16.
class Bench : public Scratch {
 public:
  Bench() {
    put("data", counting_bytes(8 * 4096));
    run_ok("write emu:file=disk.img,size=64Ki -d data");
    image_ = get("disk.img");
  }
  bool image_unchanged() const { return get("disk.img") == image_; }

 private:
  Bytes image_;
};

}  // namespace

TEST_CASE("an empty file name, as of an unset variable, writes nothing") {
  for (const Words& line : {Words{"write", "emu:file=disk.img", "-d", ""},
                            Words{"write", "emu:file=disk.img", "--data="},
                            Words{"write", "emu:file=disk.img", "--blocks", "8", "-d", ""}}) {
    const Bench bench;
    const Outcome outcome = bench.run(line);
    CHECK((outcome.status == 2 || outcome.status == 8));
    check_one_line(outcome.err, {"--data"});
    CHECK(bench.image_unchanged());
  }
}

TEST_CASE("an empty metadata file name is not the same as none") {
  const Bench bench;
  const Outcome outcome =
      bench.run(Words{"write", "emu:file=disk.img", "-d", "data", "-M", "", "--blocks", "1"});
  CHECK((outcome.status == 2 || outcome.status == 8));
  check_one_line(outcome.err, {"--metadata"});
  CHECK(bench.image_unchanged());
}

TEST_CASE("an image is never its own output file") {
  for (const char* line :
       {"read emu:file=disk.img -d disk.img", "read emu:file=disk.img -d ./disk.img",
        "read emu:file=disk.img -d back -M disk.img"}) {
    INFO(std::string(line));
    const Bench bench;
    const Outcome outcome = bench.run(line);
    CHECK((outcome.status == 2 || outcome.status == 8));
    check_one_line(outcome.err, {"disk.img"});
    CHECK(bench.image_unchanged());
  }
}

TEST_CASE("data and metadata do not go to the same file") {
  for (const char* line : {"read emu:file=disk.img -d back -M back", "read emu:file=disk.img -M -",
                           "write emu:file=disk.img -d - -M -"}) {
    INFO(std::string(line));
    const Bench bench;
    const Outcome outcome = bench.run(line, {.stdin_file = bench.path("data")});
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    check_one_line(outcome.err, {"--metadata"});
    CHECK_FALSE(bench.has("back"));
    CHECK(bench.image_unchanged());
  }
}

TEST_CASE("a huge count is refused by its real size") {
  const Bench bench;
  struct Case {
    const char* options;
    Words words;
  };
  for (const auto& [options, words] : std::vector<Case>{
           {"-s 5 --blocks 0xffffffffffffffff", {"last LBA is 15"}},
           {"-z 0xfffffffffffffffe", {"18446744073709551614", "18446744073709547520"}},
           {"--blocks 0x2000000000000001 -z 4096", {"4096", "2305843009213693953"}}}) {
    INFO(std::string(options));
    const Outcome outcome = bench.run("read emu:file=disk.img -d back " + std::string(options));
    CHECK(outcome.status == 2);
    check_one_line(outcome.err, words);
    // What an overflow would say.
    for (const char* wrong : {"LBA 3 ", "or 0", "exactly 4096"}) {
      CHECK_MESSAGE(outcome.err.find(wrong) == std::string::npos, outcome.err);
    }
  }
}

TEST_CASE("a file name that is no UTF-8 is reported in JSON all the same") {
  const Bench bench;
  for (const Words& line : {Words{"write", "emu:file=disk.img", "-o", "json", "-d", "bad\xff"},
                            Words{"read", "emu:file=\xff/disk.img", "-o", "json", "-d", "back"},
                            Words{"read", "emu:file=disk.img", "-o", "json", "-d", "\xff/back"}}) {
    const Outcome outcome = bench.run(line);
    CHECK(outcome.status == 8);
    CHECK(nlohmann::json::accept(outcome.out));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("a long report to a full device ends with a status, not with a crash") {
  const Bench bench;
  Bytes image = bench.get("disk.img");
  for (std::size_t i = 0; i < 8; ++i) image[4096 + i * 4096] ^= std::byte{1};
  bench.put("disk.img", image);
  const Outcome outcome = bench.run("read emu:file=disk.img -d back -p 0 -o json --blocks 8",
                                    {.stdout_file = "/dev/full"});
  CHECK_MESSAGE((outcome.status == 3 || outcome.status == 8), outcome.status, outcome.err);
}

TEST_CASE("trouble with the temporary directory names it") {
  const Bench bench;
  const Outcome outcome =
      bench.run("write emu:file=disk.img", {.environment = {"TMPDIR=/no/such"}});
  CHECK(outcome.status == 8);
  check_one_line(outcome.err, {"/no/such"});
  CHECK(bench.image_unchanged());
}

TEST_CASE("tags for a namespace without protection information are refused, not ignored") {
  const Scratch scratch;
  scratch.put("data", counting_bytes(4096));
  for (const char* options : {"-a 5", "-r 0", "-g 5", "--pi device", "-p 7"}) {
    INFO(std::string(options));
    const Outcome outcome =
        scratch.run("write emu:size=64Ki,ms=0,pi=0 -d data " + std::string(options));
    CHECK(outcome.status == 2);
    check_one_line(outcome.err, {"no protection information"});
  }
}
