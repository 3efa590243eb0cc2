#include "nvme/image_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace nvpi {
namespace {

// pread and pwrite may transfer less than asked for; `transfer(done)` is one call of them.
template <typename Transfer>
int transfer_all(std::size_t size, Transfer transfer) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = transfer(done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

}  // namespace

ImageFile::~ImageFile() {
  if (fd_ >= 0) close(fd_);
}

int ImageFile::size(std::uint64_t& size) const {
  struct stat st{};
  if (fstat(fd_, &st) != 0) return errno;
  size = static_cast<std::uint64_t>(st.st_size);
  return 0;
}

int ImageFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  return transfer_all(target.size(), [&](std::size_t done) {
    return pread(fd_, target.data() + done, target.size() - done, static_cast<off_t>(offset + done));
  });
}

int ImageFile::write(std::uint64_t offset, std::span<const std::byte> source) {
  return transfer_all(source.size(), [&](std::size_t done) {
    return pwrite(fd_, source.data() + done, source.size() - done, static_cast<off_t>(offset + done));
  });
}

}  // namespace nvpi
