// The commands of the tool. Each opens its device, does its work, reports, and returns the exit status.
#pragma once

#include "cli/exit_status.h"
#include "cli/options.h"

namespace nvpi::cli {

ExitStatus run(const IoOptions& options);
ExitStatus run(const IdNsOptions& options);
ExitStatus run(const RaceOptions& options);

}  // namespace nvpi::cli
