// The files that data comes from and goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

namespace nvpi::cli {

// Whether the user wants to stop. Waiting for a file ends then, with EINTR.
bool interrupted();
void interrupt();  // safe in a signal handler

// Whether two names lead to the same file, or both to standard input or output.
bool is_same_file(const std::string& a, const std::string& b);
// Where a file without a name is put: TMPDIR or /tmp.
std::string temporary_directory();

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// A source whose length is known before the first byte is used, so that a file that is too short is found
// before anything is written. Standard input ("-") and other pipes are spooled to a temporary file first.
class InputFile {
 public:
  struct Failure {
    std::string path;  // the file, or the temporary directory
    int os_errno;
  };
  static tl::expected<InputFile, Failure> open(const std::string& path);
  std::uint64_t size() const { return size_; }
  // Fills the target from the current position. 0 or an errno value; EIO if the file became shorter.
  int read(std::span<std::byte> target);

 private:
  FileHandle file_;
  std::uint64_t size_ = 0;
};

// A target that is only opened, and an old file of that name only cut, when the first bytes arrive: a
// command that fails leaves what was there.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  bool is_standard_output() const { return path_ == "-"; }
  int write(std::span<const std::byte> source);  // 0 or an errno value
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileHandle file_;
};

}  // namespace nvpi::cli
