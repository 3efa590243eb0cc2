// The race command, and Ctrl-C.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/run.h"

using namespace nvpi;
using namespace nvpi::test;

using Json = nlohmann::json;
using namespace std::chrono_literals;

TEST_CASE("race shows guard errors with zero-copy and none with bouncing") {
  for (const char* format : {"size=1M", "size=1M,mset=1,ms=64", "size=1M,ds=512,pi=3", "size=16Ki",
                             "size=1M,mset=1,ms=12", "size=1M,pif=64,ms=16"}) {
    INFO(std::string(format));
    const Scratch scratch;
    const Outcome outcome =
        scratch.run_ok("race -o json --writes 2000 --seed 7 emu:" + std::string(format));
    CHECK(outcome.err.empty());
    const Json json = Json::parse(outcome.out);
    CHECK(json["seed"] == 7);
    CHECK(json["zero_copy"]["writes"] == 2000);
    CHECK(json["zero_copy"]["guard_errors"] > 0);
    CHECK(json["zero_copy"]["other_errors"] == 0);
    CHECK(json["bounce"]["writes"] == 2000);
    CHECK(json["bounce"]["guard_errors"] == 0);
    CHECK(json["bounce"]["other_errors"] == 0);
    CHECK(json["bounce"]["damaged_blocks_on_medium"] == 0);
  }
}

TEST_CASE("race in text has a line for each mode") {
  const Scratch scratch;
  const Outcome outcome = scratch.run_ok("race --writes 300 --depth 4 emu:size=1M");
  for (const char* word : {"depth 4", "seed 0", "zero-copy", "bounce", "guard errors", "300"}) {
    CHECK(outcome.out.find(word) != std::string::npos);
  }
}

TEST_CASE("race takes numbers as every other option does") {
  const Scratch scratch;
  const Json json =
      Json::parse(scratch.run_ok("race emu:size=1M -o json --writes 1Ki --depth 0x8").out);
  CHECK(json["bounce"]["writes"] == 1024);
  CHECK(json["depth"] == 8);
}

TEST_CASE("Ctrl-C ends a race early and says so") {
  const Scratch scratch;
  Running running =
      scratch.start(words_of("race emu:size=1M --writes 0x10000000"), {.patience = 20s});
  std::this_thread::sleep_for(300ms);
  running.signal(SIGINT);
  const Outcome outcome = running.wait();
  CHECK(outcome.status == 8);
  CHECK(outcome.duration < 5s);
  CHECK_MESSAGE(outcome.err.find("stopped") != std::string::npos, outcome.err);
}

TEST_CASE("Ctrl-C ends a long write promptly and says how far it got") {
  const Scratch scratch;
  scratch.put("data", std::string_view());
  std::filesystem::resize_file(scratch.path("data"), 8ull << 30);  // a hole
  for (const int number : {SIGINT, SIGTERM}) {
    Running running = scratch.start(words_of("write emu:size=8G,ms=8 -d data"), {.patience = 20s});
    std::this_thread::sleep_for(200ms);
    running.signal(number);
    const Outcome outcome = running.wait();
    CHECK(outcome.status == 8);
    CHECK(outcome.duration < 5s);
    check_one_line(outcome.err, {"of 2097152 blocks", "stopped at LBA"});
  }
}

TEST_CASE("Ctrl-C ends the wait for a pipe that brings nothing") {
  const Scratch scratch;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Running running = scratch.start(words_of("write emu:file=disk.img,size=1M"),
                                  {.stdin_fd = ends[0], .patience = 4s});
  std::this_thread::sleep_for(200ms);
  running.signal(SIGINT);
  const Outcome outcome = running.wait();
  close(ends[0]);
  close(ends[1]);
  CHECK((outcome.status == 8 || outcome.status == 128 + SIGINT));
  CHECK(outcome.duration < 3s);
  CHECK_FALSE(scratch.has("disk.img"));
}

TEST_CASE("a reader that goes away ends a read, as it ends every tool in a pipe") {
  const Scratch scratch;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  close(ends[0]);
  const Outcome outcome = scratch.run("read emu:size=64M", {.stdout_fd = ends[1]});
  close(ends[1]);
  CHECK((outcome.status == 128 + SIGPIPE || outcome.status == 8));
}
