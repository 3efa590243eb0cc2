// Opening nodes. There is no NVMe device where these tests run, so all of it is about refusal.
#include "nvme/ring.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/process.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

void check_refused(const std::string& path, Errc code, int os_errno = 0) {
  CAPTURE(path);
  const auto ring = Ring::open(path, 8);
  REQUIRE_FALSE(ring.has_value());
  CHECK(ring.error().code == code);
  CHECK(ring.error().os_errno == os_errno);
  CHECK(ring.error().detail == path);
  const auto ns = Namespace::open(path);
  REQUIRE_FALSE(ns.has_value());
  CHECK(ns.error().code == code);
}

std::string block_device() {
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    std::error_code error;
    if (entry.is_block_file(error)) return entry.path();
  }
  return {};
}

}  // namespace

TEST_SUITE_BEGIN("ring");

TEST_CASE("a node that is not there cannot be opened, and the system says why") {
  check_refused("/dev/ng999n999", Errc::open_failed, ENOENT);
  check_refused("/dev/null/ng0n1", Errc::open_failed, ENOTDIR);
  check_refused("", Errc::open_failed, ENOENT);
}

TEST_CASE("what exists but is no character device is no NVMe node") {
  const TemporaryFile file;
  REQUIRE(truncate(file.path().c_str(), 0) != 0);
  check_refused(std::filesystem::path(file.path()).parent_path(), Errc::not_nvme_node);
  std::filesystem::create_symlink("/etc/passwd", file.path());
  check_refused(file.path(), Errc::not_nvme_node);
  std::filesystem::remove(file.path());
  REQUIRE(mkfifo(file.path().c_str(), 0600) == 0);
  check_refused(file.path(), Errc::not_nvme_node);  // and does not wait for a writer
}

TEST_CASE("another character device is no NVMe node") {
  check_refused("/dev/null", Errc::not_nvme_node);
  check_refused("/dev/zero", Errc::not_nvme_node);
}

TEST_CASE("R39: a block device is told apart, also behind a link: the caller wants /dev/ngXnY") {
  const std::string device = block_device();
  if (device.empty()) {
    MESSAGE("no block device here: not tested");
    return;
  }
  check_refused(device, Errc::block_node);
  const TemporaryFile link;
  std::filesystem::create_symlink(device, link.path());
  check_refused(link.path(), Errc::block_node);
}

TEST_CASE("R48: opening and closing a thousand times leaves no file and no mapping behind") {
  const TemporaryFile image;
  const std::string file_device = "emu:size=64K,ds=512,ms=8,file=" + image.path();
  const auto once = [&] {
    for (const char* path : {"/dev/ng999n999", "/dev/null", "/etc/passwd"}) {
      REQUIRE_FALSE(Ring::open(path, 8).has_value());
    }
    REQUIRE(Namespace::open("emu:size=1M", {.queue = {.depth = 2}}).has_value());
    REQUIRE(Namespace::open(file_device, {.queue = {.depth = 2}}).has_value());
    REQUIRE_FALSE(Namespace::open("emu:ds=1").has_value());
  };
  for (int i = 0; i < 10; ++i) once();
  const ProcessUse before = process_use();
  for (int i = 0; i < 1000; ++i) once();
  const ProcessUse after = process_use();
  CHECK(after.files == before.files);
  CHECK(after.mapped_bytes <= before.mapped_bytes + (4u << 20));
}

TEST_SUITE_END();
