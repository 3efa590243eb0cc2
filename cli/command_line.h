// The command line of the tool: commands, each with its options and the function that it runs. Option names,
// letters and value syntax are nvme-cli's where it has them. CLI11 stays behind this header.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_status.h"

namespace CLI {
class App;
}

namespace nvpi::cli {

enum class OutputFormat : std::uint8_t { normal, json };

struct CommonOptions {
  std::string device;  // /dev/ngXnY or emu:..., empty for a command that has none
  OutputFormat output = OutputFormat::normal;
  bool verbose = false;
};

// Ends the parsing with "OPTION: WHY". For use within the parse function of Command::option only.
[[noreturn]] void refuse(const std::string& names, const std::string& why);

// nvme-cli's number syntax (nvme/number.h); outside of [least, limit] it is refused.
std::uint64_t number_from(const std::string& names, const std::string& text, std::uint64_t limit,
                          std::uint64_t least = 0);

// One command. Names are those of an option, such as "-s,--start-block". Targets must live until the command
// has run: keep them in what the function of runs() holds.
class Command {
 public:
  // The general one: parse gets the text, and refuses what it cannot take.
  Command& option(const std::string& names, const std::string& value_name, const std::string& help,
                  std::function<void(const std::string& text)> parse);
  Command& flag(const std::string& names, bool& target, const std::string& help);
  Command& text(const std::string& names, const std::string& value_name, std::string& target,
                const std::string& help);
  Command& file(const std::string& names, std::string& target, const std::string& help);

  // The target is a T, or a std::optional of it to tell "not given".
  template <typename T, typename Target>
  Command& number(const std::string& names, Target& target, const std::string& help,
                  std::uint64_t limit = std::numeric_limits<T>::max(), std::uint64_t least = 0) {
    return option(names, "N", help, [&target, names, limit, least](const std::string& text) {
      target = static_cast<T>(number_from(names, text, limit, least));
    });
  }

  template <typename T, typename Target>
  Command& choice(const std::string& names, Target& target, const std::string& help,
                  std::vector<std::pair<std::string, T>> choices) {
    std::string allowed;
    for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : "|") + name;
    return option(names, allowed, help, [&target, names, choices, allowed](const std::string& text) {
      for (const auto& [name, value] : choices) {
        if (name == text) {
          target = value;
          return;
        }
      }
      refuse(names, "'" + text + "' is not one of " + allowed);
    });
  }

  Command& excludes(const std::string& name, const std::string& other);
  // -o and -v, and for most commands the device, without which they do not run.
  Command& output(CommonOptions& common);
  Command& device(CommonOptions& common);
  // A word behind the options; a required one is missed in words that name it.
  Command& positional(const std::string& name, std::string& target, const std::string& help);
  Command& positionals(const std::string& name, std::vector<std::string>& target, const std::string& help);
  Command& footer(const std::string& text);

  // A command within this one, such as "generate" of "pi".
  Command subcommand(const std::string& name, const std::string& help);
  // What the command does; not for one that has subcommands.
  void runs(std::function<ExitStatus()> body);

  // With the options in a struct of their own, which lives as long as the command can run.
  template <typename Options>
  void runs(std::shared_ptr<Options> options, ExitStatus (*body)(const Options&)) {
    runs([options, body] { return body(*options); });
  }

 private:
  friend class CommandLine;
  using Bodies = std::map<const CLI::App*, std::function<ExitStatus()>>;

  Command(CLI::App& app, Bodies& bodies) : app_(&app), bodies_(&bodies) {}

  CLI::App* app_;
  Bodies* bodies_;
};

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  // Commands with the same group stand together in the help, groups in the order of their first command.
  Command command(const std::string& name, const std::string& group, const std::string& help);

  // Parses and runs the command. Help and complaints about the command line are printed here.
  ExitStatus run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  Command::Bodies bodies_;
};

}  // namespace nvpi::cli
