#include "support/emulated.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

namespace nvpi::test {

std::unique_ptr<EmulatedNamespace> make_emulated(const PiFormat& format,
                                                 const EmulatedOptions& options) {
  auto device = EmulatedNamespace::create({.format = format.fields(),
                                           .block_count = options.block_count,
                                           .file = options.file,
                                           .mdts = options.mdts,
                                           .capacity = options.capacity,
                                           .on_transfer = options.on_transfer});
  REQUIRE(device.has_value());
  return std::move(*device);
}

OpenedEmulated open_emulated(const PiFormat& format, const EmulatedOptions& options,
                             const QueueOptions& queue) {
  auto device = make_emulated(format, options);
  EmulatedNamespace* const raw = device.get();
  auto ns = Namespace::open(std::unique_ptr<Transport>(std::move(device)), {.queue = queue});
  REQUIRE(ns.has_value());
  return {raw, std::move(*ns)};
}

Status carry_out(Transport& transport, const Command& command) {
  REQUIRE(transport.submit(command, 99).has_value());
  Completion completion;
  const auto count = transport.reap({&completion, 1}, std::chrono::seconds(1));
  REQUIRE(count.has_value());
  REQUIRE(*count == 1);
  REQUIRE(completion.user_data == 99);
  REQUIRE(completion.result >= 0);
  return completion.status();
}

void check_all_slots_are_back(Namespace& ns) {
  CHECK(ns.queue().in_flight() == 0);
  CHECK(ns.queue().pool().free_count() == ns.queue().pool().slot_count());
  CHECK(ns.queue().pool().abandoned_count() == 0);
}

void damage(EmulatedNamespace& device, std::uint64_t lba) {
  Bytes block(device.medium().format().data_size());
  REQUIRE(device.medium().read_data(lba, block) == 0);
  block[1] ^= std::byte{0x20};
  REQUIRE(device.medium().write_data(lba, block) == 0);
}

AlignedBytes::AlignedBytes(std::size_t size, std::size_t shift)
    : storage_(size + shift + 64), begin_(nullptr), size_(size) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  begin_ = storage_.data() + (64 - address % 64) % 64 + shift;
}

TemporaryFile::TemporaryFile() {
  std::string pattern = std::filesystem::temp_directory_path() / "nvpi-test-XXXXXX";
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
  path_ = directory_ + "/image";
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace nvpi::test
