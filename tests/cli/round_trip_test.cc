// What is written is what is read back: formats, block counts, files and pipes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

std::vector<PiFormat::Fields> formats() {
  std::vector<PiFormat::Fields> all = typical_formats();
  const std::vector<PiFormat::Fields> more = {
      {512, 0, separate, none},
      {4096, 64, extended, none},
      {512, 64, separate, type_1, first, guard_16b, 0},
      {512, 16, extended, type_1, first, guard_16b, 0},
      {4096, 16, separate, type_2, last, guard_16b, 0},
      {4096, 8, extended, type_3, first, guard_16b, 0},
      {4096, 16, extended, type_2, first, guard_64b, 48},
      {4096, 64, separate, type_3, first, guard_64b, 0},
      {4096, 64, extended, type_1, first, guard_32b, 64},
      {4096, 12, extended, type_1, last, guard_16b, 0},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

constexpr const char* disk = "emu:file=disk.img";

// Feeds a pipe in small pieces, as a slow producer does.
void feed(int fd, const Bytes& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t piece = std::min<std::size_t>(1000, bytes.size() - done);
    const ssize_t n = write(fd, bytes.data() + done, piece);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(fd);
}

}  // namespace

TEST_CASE("what is written is read back, in every format and over many commands") {
  for (const PiFormat::Fields& fields : formats()) {
    CAPTURE(describe(fields));
    const Scratch scratch;
    const Bytes data = some_bytes(40 * fields.data_size);
    scratch.put("data", data);
    scratch.run_ok("write " + emulated(fields, 64) + ",mdts=2 -s 5 -d data");
    // The image is enough to find the format again.
    const Outcome read =
        scratch.run_ok("read emu:file=disk.img,mdts=2 -s 5 --blocks 40 -d back -o json");
    CHECK(scratch.get("back") == data);
    const auto json = nlohmann::json::parse(read.out);
    CHECK(json["slba"] == 5);
    CHECK(json["blocks"] == 40);
    CHECK(json["bytes"] == data.size());
    if (fields.type != none) {
      CHECK(json["verified"] == 40);
      CHECK(json["unprotected"] == 0);
    }
  }
}

TEST_CASE("the block count is the same by -c, --blocks, -z and the length of the file") {
  struct Case {
    const char* options;
    std::size_t read_blocks;
  };
  const Case cases[] = {{"-c 7", 8},
                        {"--block-count 0x7", 8},
                        {"--blocks 8", 8},
                        {"--blocks 010", 8},
                        {"-z 32768", 8},
                        {"-z 32Ki", 8},
                        {"-z 0x8000 -c 7", 8},
                        {"--data-size 32k --blocks 8", 8},
                        {"", 24}};
  for (const auto& [options, read_blocks] : cases) {
    INFO(std::string(options));
    const Scratch scratch;
    // A count takes only the first part of a longer file.
    const bool counted = *options != '\0';
    scratch.put("data", some_bytes((counted ? 12 : 8) * 4096));
    const Bytes written = slice(scratch.get("data"), 0, 8 * 4096);
    const std::string suffix = std::string(" -s 8 ") + options;
    scratch.run_ok("write emu:file=disk.img,size=128Ki -d data" + suffix);
    scratch.run_ok("read emu:file=disk.img -d back" + suffix);
    Bytes expected = written;
    expected.resize(read_blocks * 4096 > 8 * 4096 ? 24 * 4096 : 8 * 4096);
    CHECK(scratch.get("back") == expected);
    // Nothing beside it was written.
    CHECK(all_equal(slice(scratch.get("disk.img"), 4096, 8 * 4096), 0));
    CHECK(all_equal(slice(scratch.get("disk.img"), 4096 + 16 * 4096, 16 * 4096), 0));
  }
}

TEST_CASE("standard input and output carry data: a file, a pipe, with and without -d -") {
  const Bytes data = some_bytes(50 * 4096);
  std::signal(SIGPIPE, SIG_IGN);
  for (const char* dash : {"", " -d -"}) {
    for (const bool by_pipe : {false, true}) {
      INFO(std::string(dash));
      CAPTURE(by_pipe);
      const Scratch scratch;
      scratch.put("data", data);
      const std::string line = std::string("write emu:file=disk.img,size=1M") + dash;
      Outcome written;
      if (by_pipe) {
        int ends[2];
        REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
        Running running = scratch.start(words_of(line), {.stdin_fd = ends[0]});
        close(ends[0]);
        feed(ends[1], data);
        written = running.wait();
      } else {
        written = scratch.run(line, {.stdin_file = scratch.path("data")});
      }
      REQUIRE_MESSAGE(written.status == 0, written.err);
      CHECK(written.err == "wrote 50 blocks at LBA 0\n");
      const Outcome read = scratch.run_ok(std::string("read emu:file=disk.img --blocks 50") + dash);
      CHECK(copy_of(std::as_bytes(std::span(read.out))) == data);
      CHECK(read.err == "read 50 blocks at LBA 0: 50 verified, 0 unprotected\n");
    }
  }
}

TEST_CASE("standard input is read from where it stands") {
  const Scratch scratch;
  scratch.put("data", some_bytes(50 * 4096));
  const int fd = open(scratch.path("data").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(lseek(fd, 4096, SEEK_SET) == 4096);
  const Outcome written = scratch.run("write emu:file=disk.img,size=1M", {.stdin_fd = fd});
  close(fd);
  CHECK(written.err == "wrote 49 blocks at LBA 0\n");
  scratch.run_ok("read emu:file=disk.img --blocks 49 -d back");
  CHECK(scratch.get("back") == slice(scratch.get("data"), 4096, 49 * 4096));
}

TEST_CASE("a file of several chunks arrives whole, with separate and with extended metadata") {
  for (const char* format : {"ds=4096,ms=8", "ds=512,ms=16,mset=1,pi=2"}) {
    INFO(std::string(format));
    const Scratch scratch;
    const Bytes data = some_bytes((20 << 20) + 4096);
    scratch.put("data", data);
    scratch.run_ok(std::string("write emu:file=disk.img,size=32M,") + format + " -d data -s 3");
    scratch.run_ok("read emu:file=disk.img -d back -s 3 -z " + std::to_string(data.size()));
    CHECK(scratch.get("back") == data);
  }
}

TEST_CASE("an output file is replaced, not overlaid") {
  const Scratch scratch;
  scratch.put("data", some_bytes(2 * 4096));
  scratch.run_ok("write emu:file=disk.img,size=64Ki -d data");
  scratch.put("back", some_bytes(10 * 4096));
  scratch.run_ok("read emu:file=disk.img -d back --blocks 2");
  CHECK(scratch.get("back") == scratch.get("data"));
}

TEST_CASE("a format or size that contradicts the image is refused, the same one is not") {
  const Scratch scratch;
  scratch.put("data", some_bytes(8 * 4096));
  scratch.run_ok("write emu:file=disk.img,size=64Ki,ds=4096,ms=8,pi=1 -d data");
  const Bytes image = scratch.get("disk.img");
  for (const char* other : {"ds=512", "size=128Ki,ms=8", "size=64Ki,ms=16", "size=64Ki,pi=2",
                            "size=64Ki,mset=1", "size=64Ki,pil=1", "size=64Ki,sts=8"}) {
    INFO(std::string(other));
    const Outcome outcome =
        scratch.run("write " + std::string(disk) + "," + other + " -d data --blocks 1");
    CHECK(outcome.status == 8);
    check_one_line(outcome.err, {"disk.img", "another format or size", "leave them out"});
    CHECK(scratch.get("disk.img") == image);
  }
  scratch.run_ok("read emu:file=disk.img,size=64Ki,pi=1 --blocks 8 -d back");
  CHECK(scratch.get("back") == scratch.get("data"));
}
