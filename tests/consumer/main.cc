// The example of the README, on an emulated namespace.
#include <cstddef>
#include <cstdio>
#include <vector>

#include "nvme/namespace.h"

int main() {
  auto ns = nvpi::Namespace::open("emu:ds=4096,ms=8,pi=1,size=1M");
  if (!ns) return 1;
  std::vector<std::byte> buffer(8 * (*ns)->format().data_size(), std::byte{0x5A});
  const auto written = (*ns)->transfer({.opcode = nvpi::Opcode::write,
                                        .slba = 16,
                                        .block_count = 8,
                                        .memory = {nvpi::UserMemory(buffer), {}}});
  if (!written) return 2;
  const auto read = (*ns)->transfer({.opcode = nvpi::Opcode::read,
                                     .slba = 16,
                                     .block_count = 8,
                                     .memory = {nvpi::UserMemory(buffer), {}}});
  if (!read || read->verified != 8) return 3;
  std::puts("8 blocks verified");
  return 0;
}
