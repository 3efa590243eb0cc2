#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"
#include "cli/report.h"

int main(int argc, char** argv) {
  using namespace nvpi::cli;
  catch_interrupts();
  CommandLine line;
  add_read_and_write(line);
  add_id_ns(line);
  add_race(line);
  const ExitStatus status = line.run(argc, argv);
  // A report that nobody can have read is no success.
  if (std::fflush(stdout) != 0 && status == ExitStatus::ok) {
    std::fprintf(stderr, "nvpi: standard output: %s\n", std::strerror(errno));
    return static_cast<int>(ExitStatus::system);
  }
  return static_cast<int>(status);
}
