// What only a real kernel has: nodes and permissions; and the tool on a real node.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "target.h"

namespace nvpi::test {
namespace {

Errc open_error(const std::string& path) {
  const auto ns = Namespace::open(path);
  REQUIRE_FALSE(ns);
  return ns.error().code;
}

// Runs `work` as nobody in a child process; its result is the exit status.
template <typename Work>
int as_nobody(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("guest: a block node or a controller given by mistake is named, with the node to use") {
  CHECK(open_error("/dev/nvme0n1") == Errc::block_node);
  CHECK(open_error("/dev/nvme0") == Errc::controller_node);
  CHECK(open_error("/dev/null") == Errc::not_nvme_node);
  CHECK(open_error("/dev/ng77n1") == Errc::open_failed);
}

TEST_CASE("guest: without permission the node is refused, and says so") {
  const std::string node = find_node(1);
  REQUIRE(chmod(node.c_str(), 0600) == 0);
  const int result = as_nobody([&] {
    const auto ns = Namespace::open(node);
    return !ns && ns.error().code == Errc::open_failed && ns.error().os_errno == EACCES ? 0 : 1;
  });
  CHECK(result == 0);
}

TEST_CASE(
    "guest: a user with access to the node reads on kernels from 6.2 on, and is told why not "
    "before") {
  const std::string node = find_node(1);
  REQUIRE(chmod(node.c_str(), 0666) == 0);
  const int result = as_nobody([&] {
    const auto ns = Namespace::open(node);
    if (!ns) return ns.error().os_errno == EACCES || ns.error().os_errno == EPERM ? 13 : 1;
    std::vector<std::byte> block((*ns)->format().data_size());
    const auto read = (*ns)->transfer({.block_count = 1, .memory = {UserMemory(block), {}}});
    return read ? 0 : read.error().os_errno == EACCES ? 13 : 2;
  });
  REQUIRE(chmod(node.c_str(), 0600) == 0);
  const std::string kernel =
      std::getenv("NVPI_VM_KERNEL") == nullptr ? "" : std::getenv("NVPI_VM_KERNEL");
  CHECK(result == (kernel.starts_with("6.1") && !kernel.starts_with("6.12") ? 13 : 0));
}

TEST_CASE("guest: the tool writes a file and reads it back, and its exit status names the tag") {
  const std::string node = find_node(1);
  {
    std::ofstream file("/tmp/data", std::ios::binary);
    for (int i = 0; i < 3 << 20; ++i) file.put(static_cast<char>(i * 7 + (i >> 12) + 1));
  }
  CHECK(shell("nvpi id-ns " + node) == 0);
  CHECK(shell("nvpi write " + node + " -s 16 -c 7 -z 32768 -d /tmp/data") == 0);
  CHECK(shell("nvpi read " + node + " -s 16 -c 7 -z 32768 -d /tmp/copy") == 0);
  CHECK(shell("head -c 32768 /tmp/data | cmp - /tmp/copy") == 0);
  CHECK(shell("nvpi write " + node + " -s 16 -a 0x1234 -d /tmp/data -v") == 0);
  CHECK(shell("nvpi read " + node + " -s 16 -a 0x1234 -z 3Mi -d /tmp/copy") == 0);
  CHECK(shell("cmp /tmp/data /tmp/copy") == 0);
  CHECK(shell("nvpi read " + node + " -s 16 -c 0 -a 0x1235 -d /tmp/copy") == 4);
  CHECK(shell("nvpi read /dev/nvme0n1 -c 0 -d /tmp/copy") == 2);
}

}  // namespace
}  // namespace nvpi::test
