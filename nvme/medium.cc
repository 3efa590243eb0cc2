#include "nvme/medium.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace nvpi {
namespace {

constexpr std::uint64_t header_size = 4096;
constexpr std::array<char, 8> magic = {'N', 'V', 'P', 'I', 'E', 'M', 'U', '1'};

// The start of the file; the rest of the header is zero. In the byte order of the machine: an image is
// not made to travel.
struct Header {
  std::array<char, 8> magic;
  std::uint64_t block_count;
  std::uint64_t storage_tag_mask;
  std::uint32_t data_size;
  std::uint32_t metadata_size;
  std::uint8_t extended;
  std::uint8_t type;
  std::uint8_t first;
  std::uint8_t guard;
  std::uint32_t storage_tag_size;
};
static_assert(sizeof(Header) == 40);

Header make_header(const PiFormat& format, std::uint64_t block_count) {
  return {magic,
          block_count,
          format.storage_tag_mask(),
          format.data_size(),
          format.metadata_size(),
          format.extended(),
          static_cast<std::uint8_t>(format.type()),
          format.position() == PiPosition::first,
          static_cast<std::uint8_t>(format.guard()),
          format.storage_tag_size()};
}

tl::unexpected<Error> bad_medium(const std::string& path, std::string_view rule, int os_errno = 0) {
  return fail({.code = Errc::bad_medium, .os_errno = os_errno, .rule = rule, .detail = path});
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

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

Result<Medium::Description> read_description(int fd, const std::string& path) {
  Header header{};
  const int error = transfer_all(sizeof header, [&](std::size_t done) {
    return pread(fd, reinterpret_cast<char*>(&header) + done, sizeof header - done, static_cast<off_t>(done));
  });
  if (error != 0 || header.magic != magic) {
    return bad_medium(path, "is no image of an emulated namespace");
  }
  const auto format = PiFormat::create({
      .data_size = header.data_size,
      .metadata_size = header.metadata_size,
      .layout = header.extended != 0 ? MetadataLayout::extended : MetadataLayout::separate,
      .type = static_cast<PiType>(header.type),
      .position = header.first != 0 ? PiPosition::first : PiPosition::last,
      .guard = static_cast<GuardType>(header.guard),
      .storage_tag_size = header.storage_tag_size,
      .storage_tag_mask = header.storage_tag_mask,
  });
  if (!format || header.block_count == 0 || header.block_count > 1ull << 48) {
    return bad_medium(path, "has a damaged header");
  }
  return Medium::Description{*format, header.block_count};
}

// Whether everything fits into a file or an address space, the arithmetic included.
bool fits(const PiFormat& format, std::uint64_t block_count) {
  constexpr std::uint64_t limit = 1ull << 62;
  const std::uint64_t per_block = std::uint64_t{format.data_size()} + format.metadata_size() + 1;
  return block_count > 0 && block_count < limit / per_block;
}

tl::unexpected<Error> bad_size() {
  return fail({.code = Errc::bad_option, .rule = "is too large", .detail = "size"});
}

class MemoryMedium final : public Medium {
 public:
  MemoryMedium(const PiFormat& format, std::uint64_t block_count) : Medium(format, block_count, 0) {
    void* memory = mmap(nullptr, size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  }
  ~MemoryMedium() override {
    if (memory_ != nullptr) munmap(memory_, size());
  }
  bool mapped() const { return memory_ != nullptr; }
  int flush() override { return 0; }

 private:
  int read_at(std::uint64_t offset, std::span<std::byte> target) override {
    std::copy_n(memory_ + offset, target.size(), target.data());
    return 0;
  }
  int write_at(std::uint64_t offset, std::span<const std::byte> source) override {
    std::copy_n(source.data(), source.size(), memory_ + offset);
    return 0;
  }
  std::byte* memory_ = nullptr;
};

class FileMedium final : public Medium {
 public:
  FileMedium(const PiFormat& format, std::uint64_t block_count, FileDescriptor fd)
      : Medium(format, block_count, header_size), fd_(std::move(fd)) {}

  int make() {
    const Header header = make_header(format(), block_count());
    if (ftruncate(fd_.get(), static_cast<off_t>(size())) != 0) return errno;
    return write_at(0, std::as_bytes(std::span(&header, 1)));
  }
  int check_size() const {
    struct stat st{};
    if (fstat(fd_.get(), &st) != 0) return errno;
    return static_cast<std::uint64_t>(st.st_size) < size() ? ENODATA : 0;
  }
  int flush() override { return fdatasync(fd_.get()) == 0 ? 0 : errno; }

 private:
  int read_at(std::uint64_t offset, std::span<std::byte> target) override {
    return transfer_all(target.size(), [&](std::size_t done) {
      return pread(fd_.get(), target.data() + done, target.size() - done,
                   static_cast<off_t>(offset + done));
    });
  }
  int write_at(std::uint64_t offset, std::span<const std::byte> source) override {
    return transfer_all(source.size(), [&](std::size_t done) {
      return pwrite(fd_.get(), source.data() + done, source.size() - done,
                    static_cast<off_t>(offset + done));
    });
  }
  FileDescriptor fd_;
};

}  // namespace

Medium::Medium(const PiFormat& format, std::uint64_t block_count, std::uint64_t data_offset)
    : format_(format),
      block_count_(block_count),
      data_offset_(data_offset),
      metadata_offset_(data_offset_ + block_count * format.data_size()),
      states_offset_(metadata_offset_ + block_count * format.metadata_size()) {}

Result<std::unique_ptr<Medium>> Medium::in_memory(const PiFormat& format, std::uint64_t block_count) {
  if (!fits(format, block_count)) return bad_size();
  auto medium = std::make_unique<MemoryMedium>(format, block_count);
  if (!medium->mapped()) return fail({.code = Errc::os, .os_errno = ENOMEM});
  return medium;
}

Result<std::unique_ptr<Medium>> Medium::in_file(const std::string& path, const PiFormat& format,
                                                std::uint64_t block_count) {
  if (!fits(format, block_count)) return bad_size();
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd.get() < 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  // Two drivers on one image would each be right and the image wrong.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return bad_medium(path, "is in use by another process", errno);
  }
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  if (!S_ISREG(st.st_mode)) return bad_medium(path, "is not a regular file");

  const bool is_new = st.st_size == 0;
  if (!is_new) {
    const auto found = read_description(fd.get(), path);
    if (!found) return fail(found.error());
    const Header wanted = make_header(format, block_count);
    const Header stored = make_header(found->format, found->block_count);
    if (std::memcmp(&wanted, &stored, sizeof wanted) != 0) {
      return bad_medium(path, "was made with another format or size; leave them out to use the image's");
    }
  }
  auto medium = std::make_unique<FileMedium>(format, block_count, std::move(fd));
  if (const int error = is_new ? medium->make() : medium->check_size(); error != 0) {
    return bad_medium(path, is_new ? "cannot be made" : "is shorter than its header says", error);
  }
  return medium;
}

Result<Medium::Description> Medium::describe(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  return read_description(fd.get(), path);
}

int Medium::read_data(std::uint64_t lba, std::span<std::byte> target) {
  return read_at(data_offset_ + lba * format_.data_size(), target);
}
int Medium::read_metadata(std::uint64_t lba, std::span<std::byte> target) {
  return read_at(metadata_offset_ + lba * format_.metadata_size(), target);
}
int Medium::read_states(std::uint64_t lba, std::span<BlockState> target) {
  return read_at(states_offset_ + lba, std::as_writable_bytes(target));
}
int Medium::write_data(std::uint64_t lba, std::span<const std::byte> source) {
  return write_at(data_offset_ + lba * format_.data_size(), source);
}
int Medium::write_metadata(std::uint64_t lba, std::span<const std::byte> source) {
  return write_at(metadata_offset_ + lba * format_.metadata_size(), source);
}
int Medium::write_states(std::uint64_t lba, std::span<const BlockState> source) {
  return write_at(states_offset_ + lba, std::as_bytes(source));
}

}  // namespace nvpi
