// Help and version.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "cli/run.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

// Every option name that the help shows: "-s" and "--start-block".
Words options_in(const std::string& help) {
  Words names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream column(line.substr(0, line.find(' ', 2)));
    for (std::string name; std::getline(column, name, ',');) {
      name.erase(0, name.find('-'));
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("help fits a screen, shows every option once, and is no failure") {
  for (const char* command : {"", "read ", "write ", "id-ns ", "race "}) {
    INFO(std::string(command));
    const Scratch scratch;
    const Outcome outcome = scratch.run(std::string(command) + "--help");
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.find("Usage: nvpi " + std::string(command)) != std::string::npos);
    std::istringstream lines(outcome.out);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      CHECK_MESSAGE(line.size() <= 100, line);
    }
    CHECK(count <= 40);
    const Words names = options_in(outcome.out);
    CHECK(names.size() >= 3);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  }
}

TEST_CASE("help names every command and every exit status") {
  const Scratch scratch;
  const std::string help = scratch.run_ok("--help").out;
  for (const char* word : {"read", "write", "id-ns", "race", "0 ok", "1 NVMe status", "2 usage",
                           "3 guard", "4 application tag", "5 reference tag", "6 storage tag",
                           "7 compare failure", "8 operating system"}) {
    CHECK_MESSAGE(help.find(word) != std::string::npos, word);
  }
}

TEST_CASE("the version is one line") {
  CHECK(Scratch().run_ok("--version").out == "nvpi 0.1.0\n");
}

TEST_CASE("a misspelt command line does not print the whole help") {
  const Outcome outcome = Scratch().run("read --blokcs 3 emu:");
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  check_one_line(outcome.err, {"--blokcs"});
}
