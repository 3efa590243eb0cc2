#include "cli/run.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "support/reference.h"

namespace nvpi::test {
namespace {

namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string make_directory() {
  std::string pattern = fs::temp_directory_path() / "nvpi-cli-XXXXXX";
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  return pattern;
}

std::vector<char*> pointers_to(Words& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Words words_of(std::string_view line) {
  std::istringstream stream{std::string(line)};
  return {std::istream_iterator<std::string>(stream), {}};
}

void Running::signal(int number) const {
  REQUIRE(kill(pid_, number) == 0);
}

Outcome Running::wait() {
  Outcome outcome;
  int raw = 0;
  bool killed = false;
  while (waitpid(pid_, &raw, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline_) {
      kill(pid_, SIGKILL);
      killed = true;
      waitpid(pid_, &raw, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto ended = std::chrono::steady_clock::now();
  outcome.duration = std::chrono::duration_cast<std::chrono::milliseconds>(ended - started_);
  if (!killed) outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  if (!out_.empty()) outcome.out = read_text(out_);
  outcome.err = read_text(err_);
  CHECK_MESSAGE(outcome.err.find("Sanitizer") == std::string::npos, outcome.err);
  CHECK_MESSAGE(outcome.err.find("runtime error") == std::string::npos, outcome.err);
  return outcome;
}

Scratch::Scratch() : directory_(make_directory()), output_directory_(make_directory()) {}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  fs::remove_all(output_directory_, ignored);
}

std::string Scratch::path(std::string_view name) const {
  return directory_ + "/" + std::string(name);
}

bool Scratch::has(std::string_view name) const {
  return fs::exists(path(name));
}

Words Scratch::names() const {
  Words names;
  for (const auto& entry : fs::directory_iterator(directory_)) names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  return names;
}

void Scratch::put(std::string_view name, std::span<const std::byte> bytes) const {
  put(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Scratch::put(std::string_view name, std::string_view text) const {
  std::ofstream file(path(name), std::ios::binary);
  file << text;
  file.close();
  REQUIRE(file.good());
}

Bytes Scratch::get(std::string_view name) const {
  const std::string content = text(name);
  return copy_of(std::as_bytes(std::span(content)));
}

std::string Scratch::text(std::string_view name) const {
  return read_text(path(name));
}

Running Scratch::start(const Words& arguments, const RunOptions& options) const {
  static unsigned count = 0;
  Running running;
  const std::string prefix = output_directory_ + "/" + std::to_string(count++);
  const bool captured = options.stdout_file.empty() && options.stdout_fd < 0;
  if (captured) running.out_ = prefix + ".out";
  const std::string& out = captured ? running.out_ : options.stdout_file;
  running.err_ = prefix + ".err";

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory_.c_str());
  if (options.stdin_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, options.stdin_fd, STDIN_FILENO);
  } else {
    const char* const file = options.stdin_file.c_str();
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, file, O_RDONLY, 0);
  }
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (options.stdout_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, options.stdout_fd, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), flags, 0600);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, running.err_.c_str(), flags, 0600);

  Words words{NVPI_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // The last setting of a name must win, so ours come first and theirs are left out.
  Words environment = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string setting = *entry;
    const std::string name = setting.substr(0, setting.find('=') + 1);
    const bool replaced =
        std::any_of(environment.begin(), environment.end(),
                    [&](const std::string& own) { return own.starts_with(name); });
    if (!replaced) environment.push_back(setting);
  }
  running.started_ = std::chrono::steady_clock::now();
  running.deadline_ = running.started_ + options.patience;
  // What this process ignores the tool would ignore too.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigfillset(&defaults);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&running.pid_, NVPI_TOOL, &actions, &attributes,
                                pointers_to(words).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(error == 0);
  return running;
}

Outcome Scratch::run(const Words& arguments, const RunOptions& options) const {
  return start(arguments, options).wait();
}

Outcome Scratch::run(std::string_view line, const RunOptions& options) const {
  return run(words_of(line), options);
}

Outcome Scratch::run_ok(std::string_view line, const RunOptions& options) const {
  const Outcome outcome = run(line, options);
  INFO("nvpi ", std::string(line));
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err, outcome.out);
  return outcome;
}

std::string emulated(const PiFormat::Fields& fields, std::uint64_t blocks) {
  const auto number = [](const char* key, std::uint64_t value) {
    std::string pair = ",";  // appended to: GCC 12 warns of its own operator+ here
    return pair.append(key).append("=").append(std::to_string(value));
  };
  return "emu:file=disk.img" + number("size", blocks * fields.data_size) +
         number("ds", fields.data_size) + number("ms", fields.metadata_size) +
         number("mset", fields.layout == MetadataLayout::extended) +
         number("pi", static_cast<unsigned>(fields.type)) +
         number("pil", fields.position == PiPosition::first) +
         number("pif", static_cast<unsigned>(fields.guard)) +
         number("sts", fields.storage_tag_size);
}

std::size_t ImageLayout::data_at(std::uint64_t lba) const {
  return 4096 + lba * fields.data_size;
}

std::size_t ImageLayout::metadata_at(std::uint64_t lba) const {
  return data_at(blocks) + lba * fields.metadata_size;
}

std::size_t ImageLayout::pi_at(std::uint64_t lba) const {
  return metadata_at(lba) + reference_pi_offset(fields);
}

Bytes counting_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

Bytes some_bytes(std::size_t size) {
  Random random(size);
  return random_bytes(random, size);
}

Bytes slice(const Bytes& bytes, std::size_t offset, std::size_t size) {
  REQUIRE(offset + size <= bytes.size());
  return copy_of(std::span(bytes).subspan(offset, size));
}

void check_one_line(const std::string& text, const Words& expected) {
  INFO("message: ", text);
  CHECK(text.starts_with("nvpi: "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.ends_with('\n'));
  CHECK(text.size() < 250);
  for (const std::string& word : expected) {
    CHECK_MESSAGE(text.find(word) != std::string::npos, "missing: ", word);
  }
}

}  // namespace nvpi::test
