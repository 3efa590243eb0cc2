#include "target.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "nvme/emulated_namespace.h"
#include "nvme/ring.h"

namespace nvpi::test {
namespace {

constexpr std::uint64_t image_blocks = 4096;
constexpr std::uint32_t transport_depth = 16;

FormatRow row(std::uint32_t nsid, std::uint32_t ds, std::uint32_t ms, MetadataLayout layout,
              PiType type, PiPosition position = PiPosition::last,
              GuardType guard = GuardType::guard_16b) {
  return {nsid,
          {.data_size = ds,
           .metadata_size = ms,
           .layout = layout,
           .type = type,
           .position = position,
           .guard = guard}};
}

std::unique_ptr<Transport> open_emulated(const FormatRow& wanted, const std::string& image) {
  auto ns = EmulatedNamespace::create({.format = wanted.fields,
                                       .block_count = image_blocks,
                                       .file = image,
                                       .capacity = transport_depth});
  REQUIRE(ns);
  return std::move(*ns);
}

std::unique_ptr<Transport> open_node(const std::string& node) {
  auto ring = Ring::open(node, transport_depth);
  REQUIRE(ring);
  return std::move(*ring);
}

}  // namespace

const std::vector<FormatRow>& format_table() {
  using enum PiType;
  using enum PiPosition;
  constexpr auto separate = MetadataLayout::separate;
  constexpr auto extended = MetadataLayout::extended;
  static const std::vector<FormatRow> table = {
      row(1, 4096, 8, separate, type_1),
      row(2, 4096, 8, separate, type_2),
      row(3, 4096, 8, separate, type_3),
      row(4, 4096, 8, extended, type_1),
      row(5, 512, 8, separate, type_1),
      row(6, 4096, 64, separate, type_1, last),
      row(7, 4096, 64, separate, type_1, first),
      row(8, 4096, 64, extended, type_1, last),
      row(9, 4096, 64, extended, type_1, first),
      row(10, 4096, 0, separate, none),
      row(11, 512, 8, extended, type_1),
      row(12, 4096, 16, separate, type_1, last, GuardType::guard_64b),
      row(13, 4096, 64, separate, type_1, last, GuardType::guard_64b),
  };
  return table;
}

bool in_guest() {
  return std::getenv("NVPI_VM") != nullptr;
}

std::string qemu_version() {
  std::ifstream file("/sys/class/nvme/nvme0/firmware_rev");
  std::string version;
  if (in_guest()) file >> version;
  return version;
}

std::string name_of(const FormatRow& row) {
  const PiFormat::Fields& f = row.fields;
  return std::to_string(f.data_size) + "+" + std::to_string(f.metadata_size) +
         (f.layout == MetadataLayout::extended ? " extended" : " separate") + " type " +
         std::to_string(static_cast<int>(f.type)) +
         (f.position == PiPosition::first ? " first" : " last") +
         (f.guard == GuardType::guard_64b ? " 64b" : " 16b");
}

std::string find_node(std::uint32_t nsid) {
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    const std::string path = entry.path().string();
    if (!path.starts_with("/dev/ng")) continue;
    const auto node = GenericNode::open(path);
    if (node && node->nsid() == nsid) return path;
  }
  return {};
}

Target::Target(const FormatRow& row) : row_(row) {
  std::unique_ptr<Transport> transport;
  if (in_guest()) {
    device_ = find_node(row.nsid);
    REQUIRE_MESSAGE(!device_.empty(), "no generic node for nsid ", row.nsid);
    transport = open_node(device_);
  } else {
    image_ = std::filesystem::temp_directory_path() /
             ("nvpi-device-test-" + std::to_string(getpid()) + "-" + std::to_string(row.nsid));
    device_ = "emu:file=" + image_;
    transport = open_emulated(row, image_);
  }
  transport_ = transport.get();
  auto ns = Namespace::open(std::move(transport), {.patience = std::chrono::seconds(60)});
  REQUIRE(ns);
  ns_ = std::move(*ns);
}

Target::~Target() {
  ns_.reset();
  if (!image_.empty()) unlink(image_.c_str());
}

Completion Target::send(const Command& command) {
  REQUIRE(ns_->queue().in_flight() == 0);
  REQUIRE(transport_->submit(command, 0));
  Completion completion;
  const auto reaped = transport_->reap({&completion, 1}, std::chrono::seconds(60));
  REQUIRE(reaped);
  REQUIRE(*reaped == 1);
  return completion;
}

void Target::flip(Area area, std::uint64_t lba, std::uint32_t offset, std::uint8_t bits) {
  if (in_guest()) {
    // The host reads this from the serial line and changes the image; whoever flips waits to see
    // it.
    std::printf("\n@@FLIP %u %s %llu %u %02x\n", row_.nsid,
                area == Area::data ? "data" : "metadata", static_cast<unsigned long long>(lba),
                offset, bits);
    std::fflush(stdout);
    return;
  }
  // The layout of nvme/medium.h: a header, all data, all metadata.
  const std::uint64_t metadata_at = 4096 + image_blocks * format().data_size();
  const std::uint64_t at =
      offset + (area == Area::data ? 4096 + lba * format().data_size()
                                   : metadata_at + lba * format().metadata_size());
  const int fd = open(image_.c_str(), O_RDWR);
  std::uint8_t byte = 0;
  REQUIRE(pread(fd, &byte, 1, static_cast<off_t>(at)) == 1);
  byte ^= bits;
  REQUIRE(pwrite(fd, &byte, 1, static_cast<off_t>(at)) == 1);
  close(fd);
}

}  // namespace nvpi::test
