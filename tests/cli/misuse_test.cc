// Every misuse: one line that says what is wrong, the right exit status, and nothing changed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr int usage = 2, system_error = 8;

struct Case {
  const char* line;
  int status;
  Words words;
};

// Images of 16 blocks of 4096 + 8 bytes with PI type 1, and what their names say.
class Bench : public Scratch {
 public:
  Bench() {
    put("data", counting_bytes(8 * 4096));
    put("odd", counting_bytes(5000));
    put("short", counting_bytes(100));
    put("empty", std::string_view());
    put("metadata", counting_bytes(8 * 8));
    put("no-image", std::string_view(std::string(8192, 'x')));
    put("old", std::string_view("precious"));
    run_ok("write emu:file=disk.img,size=64Ki -d data");
    run_ok("write emu:file=tag.img,size=64Ki,sts=8 -d data");
    run_ok("write emu:file=bare.img,size=64Ki,ms=0,pi=0 -d data");
    run_ok("write emu:file=raw.img,size=64Ki,mset=1 -d data");
  }

  void check_refused(const Words& arguments, int status, const Words& words,
                     const RunOptions& options = {}) const {
    const auto before = contents();
    const Outcome outcome = run(arguments, options);
    CHECK(outcome.status == status);
    CHECK(outcome.out.empty());
    check_one_line(outcome.err, words);
    CHECK(contents() == before);
  }

 private:
  std::vector<std::pair<std::string, std::string>> contents() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& file : names()) {
      const std::string name = std::filesystem::path(file).filename();
      all.emplace_back(name, text(name));
    }
    return all;
  }
};

void check_all(std::span<const Case> cases) {
  const Bench bench;
  for (const auto& [line, status, words] : cases) {
    INFO(std::string(line));
    bench.check_refused(words_of(line), status, words);
  }
}

}  // namespace

TEST_CASE("a command line that cannot be understood is refused with the word that is wrong") {
  const Case cases[] = {
      {"", usage, {"command"}},
      {"frobnicate", usage, {"frobnicate"}},
      {"read --frob emu:file=disk.img -d old", usage, {"--frob"}},
      {"read emu:file=disk.img -d old -Q", usage, {"-Q"}},
      {"read emu:file=disk.img more -d old", usage, {"more"}},
      {"read -d old", usage, {"device", "/dev/ng"}},
      {"write -d data", usage, {"device", "/dev/ng"}},
      {"read emu:file=disk.img -d old -s", usage, {"--start-block"}},
      {"read emu:file=disk.img -d old -s 1 -s 2", usage, {"--start-block"}},
      {"read emu:file=disk.img -d old --pi maybe", usage, {"maybe", "host|device|none"}},
      {"read emu:file=disk.img -d old -o xml", usage, {"xml", "normal|json"}},
      {"read emu:file=disk.img -d old -c 1 --blocks 2", usage, {"--block-count", "--blocks"}},
      {"read emu:file=disk.img -d old -s 3x", usage, {"3x", "not a number"}},
      {"read emu:file=disk.img -d old -c 3x", usage, {"3x", "not a number"}},
      {"read emu:file=disk.img -d old -z 4KB", usage, {"4KB", "not a number"}},
      {"read emu:file=disk.img -d old -s 08", usage, {"08", "not a number"}},
      {"read emu:file=disk.img -d old -s -1", usage, {"-1", "not a number"}},
      {"read emu:file=disk.img -d old --blocks -1", usage, {"-1", "not a number"}},
      {"read emu:file=disk.img -d old --start-block=-1", usage, {"-1", "not a number"}},
      {"write emu:file=disk.img -d data -a -1", usage, {"-1", "not a number"}},
      {"read emu:file=disk.img -d old -s 0x10000000000000000", usage, {"0x10000000000000000"}},
      {"read emu:file=disk.img -d old -c 0x10000", usage, {"0x10000", "at most 65535"}},
      {"read emu:file=disk.img -d old -p 16", usage, {"16", "at most 15"}},
      {"read emu:file=disk.img -d old -a 65536", usage, {"65536", "at most 65535"}},
      {"read emu:file=disk.img -d old -m 0x10000", usage, {"0x10000", "at most 65535"}},
      {"race emu:size=1M --depth 0", usage, {"0", "--depth"}},
      {"race emu:size=1M --depth 2000", usage, {"2000", "1024"}},
      {"race emu:size=1M --writes -5", usage, {"-5"}},
      {"race emu:size=1M --seed 1x", usage, {"1x", "not a number"}},
  };
  check_all(cases);
  const Bench bench;
  bench.check_refused({"read", "emu:file=disk.img", "-d", "old", "-s", ""}, usage,
                      {"not a number"});
}

TEST_CASE("a device that is none is refused with what to use instead") {
  const Case cases[] = {
      {"read /dev/ng99n1 -d old", system_error, {"/dev/ng99n1", "does not exist", "ls /dev/ng*"}},
      {"read /dev/null -d old", usage, {"/dev/null", "/dev/ngXnY"}},
      {"read data -d old", usage, {"data", "/dev/ngXnY"}},
      {"read . -d old", usage, {".", "/dev/ngXnY"}},
      {"write /dev/null -d data", usage, {"/dev/null", "/dev/ngXnY"}},
      {"read emu:frob=1 -d old", usage, {"frob", "size", "lbstm"}},
      {"read emu:frob -d old", usage, {"frob", "size", "lbstm"}},
      {"read emu:size=4x -d old", usage, {"size", "64M"}},
      {"read emu:ds -d old", usage, {"ds", "4096"}},
      {"read emu:ds=513 -d old", usage, {"ds", "power of two"}},
      {"read emu:ms=4 -d old", usage, {"ms", "at least 8"}},
      {"read emu:ms=8,pif=64 -d old", usage, {"ms", "at least 16"}},
      {"read emu:ms=65536 -d old", usage, {"ms", "65535"}},
      {"read emu:pi=4 -d old", usage, {"pi", "0 to 3"}},
      {"read emu:mset=2 -d old", usage, {"mset", "0 (separate) or 1 (extended)"}},
      {"read emu:pil=2 -d old", usage, {"pil", "0 (last) or 1 (first)"}},
      {"read emu:pif=3 -d old", usage, {"pif", "0, 1 or 2"}},
      {"read emu:sts=33 -d old", usage, {"sts", "0 to 32"}},
      {"read emu:pif=32,ms=16 -d old", usage, {"sts", "16 to 64"}},
      {"read emu:pif=64,ms=16,ds=512 -d old", usage, {"ds", "at least 4096"}},
      {"read emu:mdts=99 -d old", usage, {"mdts", "0 to 20"}},
      {"read emu:lbstm=x -d old", usage, {"lbstm", "mask"}},
      {"read emu:file= -d old", usage, {"file", "path"}},
      {"read emu:size=100 -d old", usage, {"size", "at least one block"}},
      {"read emu:size=1024P -d old", system_error, {"memory"}},
      {"read emu:file=no-image -d old", system_error, {"no-image", "no image"}},
      {"read emu:file=empty,size=64Ki,ms=4 -d old", usage, {"ms"}},
      {"read emu:file=/no/such/disk.img -d old", system_error, {"/no/such/disk.img"}},
      {"read emu:file=/dev/null -d old", system_error, {"/dev/null", "no image"}},
      {"read emu:file=. -d old", system_error, {".", "no image"}},
  };
  check_all(cases);
}

TEST_CASE("a range that does not fit is refused with the numbers that would") {
  const Case cases[] = {
      {"read emu:file=disk.img -d old --blocks 0", usage, {"--blocks 0"}},
      {"write emu:file=disk.img -d data --blocks 0", usage, {"--blocks 0"}},
      {"read emu:file=disk.img -d old -z 0", usage, {"--data-size"}},
      {"read emu:file=disk.img -d old -z 5000", usage, {"5000", "4096", "8192"}},
      {"read emu:file=disk.img -d old -z 100", usage, {"100", "4096"}},
      {"read emu:file=disk.img -d old -z 8192 -c 2", usage, {"8192", "3 blocks", "12288"}},
      {"read emu:file=disk.img -d old -z 8192 --blocks 1", usage, {"8192", "4096"}},
      {"read emu:file=disk.img -d old -s 16", usage, {"LBA 16", "last LBA is 15"}},
      {"read emu:file=disk.img -d old -s 10 --blocks 7", usage, {"LBA 16", "last LBA is 15"}},
      {"read emu:file=disk.img -d old -s 0xffffffffffffffff", usage, {"last LBA is 15"}},
      {"read emu:file=disk.img -d old -c 0xffff", usage, {"LBA 65535", "last LBA is 15"}},
      {"write emu:file=disk.img -d data -s 16 -c 0", usage, {"LBA 16", "last LBA is 15"}},
      {"write emu:file=disk.img -d data -s 9", usage, {"LBA 16", "last LBA is 15"}},
      {"write emu:file=disk.img -d odd", usage, {"odd", "5000", "4096", "8192"}},
      {"write emu:file=disk.img -d short", usage, {"short", "100", "4096"}},
      {"write emu:file=disk.img -d empty", usage, {"empty"}},
      {"write emu:file=disk.img -d /dev/null", usage, {"/dev/null", "empty"}},
      {"write emu:file=disk.img", usage, {"empty"}},
      {"write emu:file=disk.img -d odd -c 1", usage, {"odd", "5000", "2 blocks", "8192"}},
      {"write emu:file=raw.img -d data --pi none", usage, {"data", "32768", "28728", "32832"}},
      {"write emu:file=disk.img -d data -M empty", usage, {"empty", "8 blocks", "64"}},
  };
  check_all(cases);
}

TEST_CASE("tags and owners that contradict the format are refused with the value and its limit") {
  const Case cases[] = {
      {"write emu:file=disk.img -d data -r 5", usage, {"0x5", "0x0", "type 1"}},
      {"read emu:file=disk.img -d old -s 3 -c 0 -r 4", usage, {"0x4", "0x3", "type 1"}},
      {"write emu:file=disk.img -d data -r 0x100000000", usage, {"0x100000000", "0xffffffff"}},
      {"write emu:file=tag.img -d data -r 0x1000000", usage, {"0x1000000", "0xffffff"}},
      {"write emu:file=tag.img -d data -g 0x100", usage, {"0x100", "0xff", "storage tag"}},
      {"write emu:file=disk.img -d data -g 1", usage, {"storage tag", "0x1"}},
      {"write emu:file=disk.img -d data -a 0xffff", usage, {"0xffff", "--allow-unprotected"}},
      {"write emu:file=disk.img -d data -p 8 -a 0xffff", usage, {"0xffff", "--allow-unprotected"}},
      {"write emu:file=disk.img -d data --pi none", usage, {"--pi none", "--metadata", "8 bytes"}},
      {"write emu:file=bare.img -d data -M metadata", usage, {"no metadata", "--metadata"}},
      {"read emu:file=bare.img -d old -M metadata", usage, {"no metadata", "--metadata"}},
      {"read emu:file=disk.img -d old -p 8 --pi host", usage, {"8", "PRACT"}},
      {"read emu:file=disk.img -d old -p 7 --pi device", usage, {"7", "PRACT"}},
      {"read emu:file=disk.img -d old -p 8 --pi none", usage, {"8", "PRACT"}},
      {"race /dev/ng0n1", usage, {"/dev/ng0n1", "16 blocks", "--force"}},
      {"race /dev/null", usage, {"/dev/null", "--force"}},
      {"race disk.img --depth 4", usage, {"disk.img", "4 blocks", "--force"}},
      {"race emu:size=1M,ms=0,pi=0", usage, {"no protection information"}},
  };
  check_all(cases);
}

TEST_CASE("files that cannot be read or written are named with the reason") {
  const Case cases[] = {
      {"write emu:file=disk.img -d missing", system_error, {"missing", "No such file"}},
      {"write emu:file=disk.img -d .", system_error, {".", "Is a directory"}},
      {"write emu:file=disk.img -d data -M missing", system_error, {"missing", "No such file"}},
      {"read emu:file=disk.img -d no/old", system_error, {"no/old", "No such file"}},
      {"read emu:file=disk.img -d .", system_error, {".", "Is a directory"}},
      {"read emu:file=disk.img -d /dev/full", system_error, {"/dev/full", "No space left"}},
  };
  check_all(cases);
  const Bench bench;
  bench.check_refused(words_of("read emu:file=disk.img"), system_error, {"No space left"},
                      {.stdout_file = "/dev/full"});
}

TEST_CASE("an image that another process uses is refused") {
  const Bench bench;
  const int fd = open(bench.path("disk.img").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(fd, LOCK_EX) == 0);
  for (const char* line : {"read emu:file=disk.img -d old", "write emu:file=disk.img -d data"}) {
    bench.check_refused(words_of(line), system_error, {"disk.img", "in use by another process"});
  }
  close(fd);
}

TEST_CASE("an image that was cut is refused") {
  const Bench bench;
  std::filesystem::resize_file(bench.path("disk.img"), 20'000);
  bench.check_refused(words_of("read emu:file=disk.img -d old"), system_error,
                      {"disk.img", "shorter than its header says"});
}

TEST_CASE("JSON on standard output never mixes with data") {
  const Bench bench;
  const Outcome outcome = bench.run("read emu:file=disk.img -o json");
  CHECK(outcome.status == usage);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["exit_status"] == usage);
  CHECK(json["type"] == "usage");
  CHECK(json["error"].get<std::string>().find("--data FILE") != std::string::npos);
}

TEST_CASE("with -o json a refusal is an object on standard output") {
  const Bench bench;
  for (const auto& [line, status, words] :
       std::vector<Case>{{"read emu:file=disk.img -d old -s 16", usage, {"last LBA is 15"}},
                         {"write emu:file=disk.img -d missing", system_error, {"missing"}},
                         {"read /dev/ng99n1 -d old", system_error, {"/dev/ng99n1"}},
                         {"race /dev/ng0n1", usage, {"--force"}}}) {
    INFO(std::string(line));
    const Outcome outcome = bench.run(std::string(line) + " -o json");
    CHECK(outcome.status == status);
    CHECK(outcome.err.empty());
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json["exit_status"] == status);
    for (const std::string& word : words) {
      CHECK(json["error"].get<std::string>().find(word) != std::string::npos);
    }
  }
}
