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

#include "nvme/image_file.h"
#include "nvme/journal.h"

namespace nvpi {
namespace {

constexpr std::uint64_t header_size = 4096;
constexpr std::array<char, 8> magic = {'N', 'V', 'P', 'I', 'E', 'M', 'U', '2'};

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

Result<Medium::Description> read_description(const ImageFile& file, const std::string& path) {
  Header header{};
  const int error = file.read(0, std::as_writable_bytes(std::span(&header, 1)));
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
  FileMedium(const PiFormat& format, std::uint64_t block_count, ImageFile file)
      : Medium(format, block_count, header_size),
        file_(std::move(file)),
        journal_(file_, (size() + header_size - 1) / header_size * header_size) {}

  int make() {
    const Header header = make_header(format(), block_count());
    if (ftruncate(file_.fd(), static_cast<off_t>(size())) != 0) return errno;
    return file_.write(0, std::as_bytes(std::span(&header, 1)));
  }
  // Completes what a process that was killed had begun.
  int recover() {
    std::uint64_t file_size = 0;
    if (const int error = file_.size(file_size)) return error;
    if (file_size < size()) return ENODATA;
    Journal::Redo redo;
    if (const int error = journal_.find(format(), block_count(), redo)) return error;
    if (redo.blocks.count() == 0) return 0;
    if (const int error = Medium::write(redo.lba, redo.blocks.view(format(), 0, redo.blocks.count()))) {
      return error;
    }
    return journal_.forget();
  }
  int write(std::uint64_t lba, const BlocksView& source) override {
    if (source.states.empty()) return 0;
    if (const int error = journal_.record(lba, source)) return error;
    if (const int error = Medium::write(lba, source)) return error;
    return journal_.forget();
  }
  int flush() override { return fdatasync(file_.fd()) == 0 ? 0 : errno; }

 private:
  int read_at(std::uint64_t offset, std::span<std::byte> target) override {
    return file_.read(offset, target);
  }
  int write_at(std::uint64_t offset, std::span<const std::byte> source) override {
    return file_.write(offset, source);
  }
  ImageFile file_;
  Journal journal_;
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
  ImageFile file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.fd() < 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  // Two drivers on one image would each be right and the image wrong.
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    return bad_medium(path, "is in use by another process", errno);
  }
  struct stat st{};
  if (fstat(file.fd(), &st) != 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  if (!S_ISREG(st.st_mode)) return bad_medium(path, "is not a regular file");

  const bool is_new = st.st_size == 0;
  if (!is_new) {
    const auto found = read_description(file, path);
    if (!found) return fail(found.error());
    const Header wanted = make_header(format, block_count);
    const Header stored = make_header(found->format, found->block_count);
    if (std::memcmp(&wanted, &stored, sizeof wanted) != 0) {
      return bad_medium(path, "was made with another format or size; leave them out to use the image's");
    }
  }
  auto medium = std::make_unique<FileMedium>(format, block_count, std::move(file));
  if (const int error = is_new ? medium->make() : medium->recover(); error != 0) {
    if (is_new) return bad_medium(path, "cannot be made", error);
    const bool is_short = error == ENODATA;
    return bad_medium(path, is_short ? "is shorter than its header says" : "cannot be recovered", error);
  }
  return medium;
}

Result<Medium::Description> Medium::describe(const std::string& path) {
  const ImageFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return fail({.code = Errc::open_failed, .os_errno = errno, .detail = path});
  return read_description(file, path);
}

int Medium::read(std::uint64_t lba, StagedBlocks& target) {
  if (const int error = read_data(lba, target.data)) return error;
  if (const int error = read_metadata(lba, target.metadata)) return error;
  return read_states(lba, target.states);
}

int Medium::write(std::uint64_t lba, const BlocksView& source) {
  if (const int error = write_data(lba, source.data)) return error;
  if (const int error = write_metadata(lba, source.metadata)) return error;
  return write_states(lba, source.states);
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
