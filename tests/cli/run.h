// Runs the built tool in a directory of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "pi/format.h"
#include "support/bytes.h"

namespace nvpi::test {

using Words = std::vector<std::string>;

Words words_of(std::string_view line);  // split at spaces

struct Outcome {
  int status =
      -1;  // 128 and more: ended by this signal, as a shell counts it; -1: had to be killed
  std::string out, err;
  std::chrono::milliseconds duration{};
};

struct RunOptions {
  std::string stdin_file = "/dev/null";
  int stdin_fd = -1;        // instead of the file, such as the end of a pipe
  std::string stdout_file;  // instead of Outcome::out
  int stdout_fd = -1;       // likewise
  Words environment;        // NAME=value, added to this process's
  std::chrono::seconds patience{60};
};

class Scratch;

// The tool while it runs.
class Running {
 public:
  void signal(int number) const;
  Outcome wait();

 private:
  friend class Scratch;
  pid_t pid_ = -1;
  std::string out_, err_;
  std::chrono::steady_clock::time_point started_, deadline_;
};

// A new directory, removed with its contents at the end. The tool runs in it, so names are
// relative.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(std::string_view name) const;
  bool has(std::string_view name) const;
  Words names() const;  // of all files, in order
  void put(std::string_view name, std::span<const std::byte> bytes) const;
  void put(std::string_view name, std::string_view text) const;
  Bytes get(std::string_view name) const;
  std::string text(std::string_view name) const;

  Running start(const Words& arguments, const RunOptions& options = {}) const;
  Outcome run(const Words& arguments, const RunOptions& options = {}) const;
  Outcome run(std::string_view line, const RunOptions& options = {}) const;
  // Runs what must succeed.
  Outcome run_ok(std::string_view line, const RunOptions& options = {}) const;

 private:
  std::string directory_, output_directory_;
};

// "emu:file=disk.img,ds=..." for a namespace of so many blocks.
std::string emulated(const PiFormat::Fields& fields, std::uint64_t blocks);

// Where things lie in disk.img: a header of 4096 bytes, data, metadata.
struct ImageLayout {
  PiFormat::Fields fields;
  std::uint64_t blocks;

  std::size_t data_at(std::uint64_t lba) const;
  std::size_t metadata_at(std::uint64_t lba) const;
  std::size_t pi_at(std::uint64_t lba) const;
};

// 00 01 ... FF 00 ...
Bytes counting_bytes(std::size_t size);
Bytes some_bytes(std::size_t size);  // random, the same for each size
Bytes slice(const Bytes& bytes, std::size_t offset, std::size_t size);

// Exactly one line of the tool, which says all of these words.
void check_one_line(const std::string& text, const Words& expected);

}  // namespace nvpi::test
