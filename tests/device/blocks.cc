#include "blocks.h"

#include <chrono>
#include <random>
#include <thread>

namespace nvpi::test {

Bytes random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

Io write_of(std::uint64_t slba, Bytes& data, const PiFormat& format) {
  return {.opcode = Opcode::write,
          .slba = slba,
          .block_count = data.size() / format.data_size(),
          .memory = {UserMemory(data), {}},
          .app_tag = test_app_tag};
}

Io read_of(std::uint64_t slba, Bytes& data, const PiFormat& format) {
  Io io = write_of(slba, data, format);
  io.opcode = Opcode::read;
  return io;
}

Io without_memory(Opcode opcode, std::uint64_t slba, std::uint64_t count) {
  return {.opcode = opcode, .slba = slba, .block_count = count, .app_tag = test_app_tag};
}

Io raw(Opcode opcode, std::uint64_t lba, RawBlock& block) {
  return {.opcode = opcode,
          .slba = lba,
          .block_count = 1,
          .memory = {UserMemory(block.data), UserMemory(block.metadata)},
          .pi = PiOwner::caller,
          .device_checks = PiChecks::none(),
          .app_tag = test_app_tag};
}

RawBlock read_raw(Target& target, std::uint64_t lba) {
  RawBlock block{Bytes(target.format().data_size()), Bytes(target.format().metadata_size())};
  REQUIRE(target.ns().transfer(raw(Opcode::read, lba, block)));
  return block;
}

void flip_and_wait(Target& target, Target::Area area, std::uint64_t lba, std::uint32_t offset) {
  const RawBlock before = read_raw(target, lba);
  target.flip(area, lba, offset, 0x10);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    const RawBlock now = read_raw(target, lba);
    if (now.data != before.data || now.metadata != before.metadata) return;
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace nvpi::test
