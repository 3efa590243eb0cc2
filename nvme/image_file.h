// An open file whose reads and writes transfer all or fail. Internal to nvme/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nvpi {

class ImageFile {
 public:
  explicit ImageFile(int fd) : fd_(fd) {}  // takes it over; below 0: is not open
  ImageFile(ImageFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ImageFile& operator=(ImageFile&&) = delete;
  ~ImageFile();

  int fd() const { return fd_; }
  // Return 0 or an errno value; a read behind the end is EIO.
  int size(std::uint64_t& size) const;
  int read(std::uint64_t offset, std::span<std::byte> target) const;
  int write(std::uint64_t offset, std::span<const std::byte> source);

 private:
  int fd_;
};

}  // namespace nvpi
