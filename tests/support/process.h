// What this process holds: for tests that nothing is left behind.
#pragma once

#include <cstddef>

namespace nvpi::test {

struct ProcessUse {
  std::size_t files = 0;         // entries of /proc/self/fd
  std::size_t mapped_bytes = 0;  // of all of /proc/self/maps
};

ProcessUse process_use();

}  // namespace nvpi::test
