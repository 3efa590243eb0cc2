#include <cerrno>
#include <cstdio>
#include <cstring>
#include <variant>

#include "cli/commands.h"
#include "cli/report.h"

int main(int argc, char** argv) {
  using namespace nvpi::cli;
  const auto parsed = parse_command_line(argc, argv);
  if (const auto* status = std::get_if<ExitStatus>(&parsed)) return static_cast<int>(*status);
  catch_interrupts();
  const ExitStatus status =
      std::visit([](const auto& options) { return run(options); }, std::get<Options>(parsed));
  // A report that nobody can have read is no success.
  if (std::fflush(stdout) != 0 && status == ExitStatus::ok) {
    std::fprintf(stderr, "nvpi: standard output: %s\n", std::strerror(errno));
    return static_cast<int>(ExitStatus::system);
  }
  return static_cast<int>(status);
}
