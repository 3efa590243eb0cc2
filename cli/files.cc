#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace nvpi::cli {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

// read and write may move less than asked for; `move_some(done)` is one call. The end of a file is EIO.
template <typename MoveSome>
int move_all(std::size_t size, MoveSome move_some) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = move_some(done);
    if (n < 0 && errno == EINTR && !interrupted()) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

int write_all(int fd, std::span<const std::byte> source) {
  return move_all(source.size(), [&](std::size_t done) {
    return write(fd, source.data() + done, source.size() - done);
  });
}

int open_spool() {
  std::string path = temporary_directory() + "/nvpi-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) unlink(path.c_str());
  return fd;
}

tl::expected<FileHandle, int> spool(int source, FileHandle target) {
  std::array<std::byte, 1 << 16> buffer;
  for (;;) {
    const ssize_t n = read(source, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR && !interrupted()) continue;
    if (n < 0) return tl::make_unexpected(errno);
    if (n == 0) break;
    const std::span<const std::byte> piece(buffer.data(), static_cast<std::size_t>(n));
    if (const int error = write_all(target.fd(), piece); error != 0) return tl::make_unexpected(error);
  }
  if (lseek(target.fd(), 0, SEEK_SET) < 0) return tl::make_unexpected(errno);
  return target;
}

}  // namespace

bool interrupted() { return interrupt_seen != 0; }

void interrupt() { interrupt_seen = 1; }

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {}, second {};
  return a == b || (stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
                    first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

std::string temporary_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

FileHandle::FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ > STDERR_FILENO) close(fd_);
}

tl::expected<InputFile, InputFile::Failure> InputFile::open(const std::string& path) {
  const auto failure = [](const std::string& where, int error) {
    return tl::make_unexpected(Failure{where, error});
  };
  InputFile input;
  input.file_ = FileHandle(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (input.file_.fd() < 0 || fstat(input.file_.fd(), &st) != 0) return failure(path, errno);
  if (S_ISDIR(st.st_mode)) return failure(path, EISDIR);
  off_t position = 0;
  if (S_ISREG(st.st_mode)) {
    position = lseek(input.file_.fd(), 0, SEEK_CUR);
  } else {
    FileHandle target(open_spool());
    if (target.fd() < 0) return failure("temporary file in " + temporary_directory(), errno);
    auto spooled = spool(input.file_.fd(), std::move(target));
    if (!spooled) return failure(path == "-" ? "standard input" : path, spooled.error());
    input.file_ = std::move(*spooled);
    if (fstat(input.file_.fd(), &st) != 0) return failure(path, errno);
  }
  input.size_ = static_cast<std::uint64_t>(st.st_size > position ? st.st_size - position : 0);
  return input;
}

int InputFile::read(std::span<std::byte> target) {
  return move_all(target.size(), [&](std::size_t done) {
    return ::read(file_.fd(), target.data() + done, target.size() - done);
  });
}

int OutputFile::write(std::span<const std::byte> source) {
  if (file_.fd() < 0) {
    file_ = FileHandle(is_standard_output()
                           ? STDOUT_FILENO
                           : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file_.fd() < 0) return errno;
  }
  return write_all(file_.fd(), source);
}

}  // namespace nvpi::cli
