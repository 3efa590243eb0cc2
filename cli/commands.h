// The commands of the tool. Each opens its device, does its work, reports, and returns the exit status; its
// options stand beside it.
#pragma once

#include "cli/command_line.h"

namespace nvpi::cli {

void add_read_and_write(CommandLine& line);
void add_id_ns(CommandLine& line);
void add_race(CommandLine& line);

}  // namespace nvpi::cli
