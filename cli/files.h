// The files that data comes from and goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

namespace nvpi::cli {

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
  static tl::expected<InputFile, int> open(const std::string& path);  // an errno value
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
