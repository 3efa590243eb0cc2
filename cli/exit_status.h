// What the tool's exit status says. Scripts depend on it: a value keeps its meaning.
#pragma once

namespace nvpi::cli {

enum class ExitStatus : int {
  ok = 0,
  nvme_status = 1,  // any other than those below
  usage = 2,        // nothing was sent
  guard = 3,        // 3-6: found by the host or told by the device
  app_tag = 4,
  ref_tag = 5,
  storage_tag = 6,
  compare_failure = 7,
  system = 8,
};

}  // namespace nvpi::cli
