#include "support/process.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace nvpi::test {

ProcessUse process_use() {
  ProcessUse use;
  const std::filesystem::directory_iterator files("/proc/self/fd");
  use.files = static_cast<std::size_t>(std::distance(begin(files), end(files)));
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) == 2) use.mapped_bytes += end - begin;
  }
  return use;
}

}  // namespace nvpi::test
