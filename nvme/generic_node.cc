#include "nvme/generic_node.h"

#include <fcntl.h>
#include <libnvme.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

namespace nvpi {
namespace {

// The name the kernel gave the device, whatever path led to it.
std::string kernel_name(int fd) {
  struct stat st{};
  if (fstat(fd, &st) != 0) return {};
  const std::string link = "/sys/dev/char/" + std::to_string(major(st.st_rdev)) + ":" +
                           std::to_string(minor(st.st_rdev));
  std::error_code error;
  return std::filesystem::canonical(link, error).filename().string();
}

std::optional<std::uint64_t> read_queue_limit(const std::string& block_name, const char* limit) {
  std::ifstream file("/sys/class/block/" + block_name + "/queue/" + limit);
  std::uint64_t value = 0;
  if (!(file >> value)) return {};
  return value;
}

// A path that exists but is no generic node: say what it is.
Errc kind_of_wrong_node(const struct stat& st, const std::string& name) {
  if (S_ISBLK(st.st_mode)) return Errc::block_node;
  if (S_ISCHR(st.st_mode) && name.starts_with("nvme")) return Errc::controller_node;
  return Errc::not_nvme_node;
}

}  // namespace

Result<GenericNode> GenericNode::open(const std::string& path) {
  const auto refuse = [&](Errc code, int os_errno = 0) {
    return fail({.code = code, .os_errno = os_errno, .detail = path});
  };
  // Looked at before it is opened: opening a tape or a terminal has effects of its own.
  struct stat st{};
  if (stat(path.c_str(), &st) != 0) return refuse(Errc::open_failed, errno);
  if (!S_ISCHR(st.st_mode)) return refuse(kind_of_wrong_node(st, {}));

  bool read_only = false;
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
    read_only = true;
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0) return refuse(Errc::open_failed, errno);
  GenericNode node(fd, 0, read_only);

  const std::string name = kernel_name(fd);
  const int nsid = ioctl(fd, NVME_IOCTL_ID);
  if (nsid <= 0) return refuse(kind_of_wrong_node(st, name));
  node.nsid_ = static_cast<std::uint32_t>(nsid);
  return node;
}

GenericNode::GenericNode(GenericNode&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), nsid_(other.nsid_), read_only_(other.read_only_) {}

GenericNode::~GenericNode() {
  if (fd_ >= 0) close(fd_);
}

Result<GenericNode> GenericNode::duplicate() const {
  const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return fail({.code = Errc::os, .os_errno = errno});
  return GenericNode(fd, nsid_, read_only_);
}

Result<IdentifyPage> GenericNode::identify(Cns cns) const {
  IdentifyPage page{};
  struct nvme_identify_args args {};
  args.args_size = sizeof args;
  args.fd = fd_;
  args.data = page.data();
  args.cns = static_cast<enum nvme_identify_cns>(cns);
  args.csi = NVME_CSI_NVM;
  args.nsid = cns == Cns::identify_controller ? NVME_NSID_NONE : nsid_;
  args.cns_specific_id = NVME_CNSSPECID_NONE;
  args.cntid = NVME_CNTLID_NONE;
  args.uuidx = NVME_UUID_NONE;
  const int result = nvme_identify(&args);
  if (result < 0) return fail({.code = Errc::os, .os_errno = errno});
  if (result > 0) return fail({.code = Errc::status, .status = Status(static_cast<std::uint16_t>(result))});
  return page;
}

std::optional<std::uint64_t> GenericNode::transfer_limit() const {
  std::string name = kernel_name(fd_);
  if (!name.starts_with("ng")) return {};
  name.replace(0, 2, "nvme");
  const auto kilobytes = read_queue_limit(name, "max_hw_sectors_kb");
  const auto segments = read_queue_limit(name, "max_segments");
  if (!kilobytes || !segments) return {};
  // Memory that does not start at a page needs one segment more than it has pages.
  return std::min(*kilobytes << 10, (std::max<std::uint64_t>(*segments, 2) - 1) * 4096);
}

}  // namespace nvpi
