#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include "nvme/number.h"

namespace nvpi::cli {
namespace {

// The last name of an option such as "-s,--start-block", for messages.
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

ExitStatus complain(const std::string& message) {
  std::cerr << "nvpi: " << message << '\n';
  return ExitStatus::usage;
}

std::string names_of_commands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// "nvpi pi check", as the user typed it.
std::string full_name(const CLI::App& app) {
  return (app.get_parent() != nullptr ? full_name(*app.get_parent()) + " " : "") + app.get_name();
}

// The first word that stands in the place of a command and is none, or null; app becomes the command it
// should be one of.
const char* unknown_command(const CLI::App*& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto all = app->get_subcommands([](const CLI::App*) { return true; });
    if (all.empty()) return nullptr;
    const auto found = std::find_if(all.begin(), all.end(), [&](const CLI::App* command) {
      return command->get_name() == argv[i];
    });
    if (found == all.end()) return argv[i];
    app = *found;
  }
  return nullptr;
}

}  // namespace

void refuse(const std::string& names, const std::string& why) {
  throw CLI::ValidationError(long_name(names) + ": " + why);
}

std::uint64_t number_from(const std::string& names, const std::string& text, std::uint64_t limit,
                          std::uint64_t least) {
  const auto value = parse_number(text);
  if (!value) refuse(names, "'" + text + "' is not a number (such as 4096, 0x1000 or 4Ki)");
  if (*value > limit) refuse(names, text + " is too large: at most " + std::to_string(limit));
  if (*value < least) refuse(names, text + " is too small: at least " + std::to_string(least));
  return *value;
}

Command& Command::option(const std::string& names, const std::string& value_name, const std::string& help,
                         std::function<void(const std::string& text)> parse) {
  app_->add_option_function<std::string>(names, std::move(parse), help)->type_name(value_name);
  return *this;
}

Command& Command::flag(const std::string& names, bool& target, const std::string& help) {
  app_->add_flag(names, target, help);
  return *this;
}

Command& Command::text(const std::string& names, const std::string& value_name, std::string& target,
                       const std::string& help) {
  return option(names, value_name, help, [&target](const std::string& text) { target = text; });
}

Command& Command::file(const std::string& names, std::string& target, const std::string& help) {
  return option(names, "FILE", help, [&target, names](const std::string& text) {
    if (text.empty()) refuse(names, "the file name is empty (an unset variable?); - is standard input or output");
    target = text;
  });
}

Command& Command::excludes(const std::string& name, const std::string& other) {
  app_->get_option(name)->excludes(app_->get_option(other));
  return *this;
}

Command& Command::output(CommonOptions& common) {
  choice<OutputFormat>("-o,--output-format", common.output, "output format",
                       {{"normal", OutputFormat::normal}, {"json", OutputFormat::json}});
  return flag("-v,--verbose", common.verbose, "say what the driver has to do without");
}

Command& Command::device(CommonOptions& common) {
  app_->add_option("device", common.device, "/dev/ngXnY, or emu:file=disk.img,ds=4096,ms=8,pi=1,size=64M");
  return output(common);
}

Command& Command::positional(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help);
  return *this;
}

Command& Command::positionals(const std::string& name, std::vector<std::string>& target,
                              const std::string& help) {
  app_->add_option(name, target, help);
  return *this;
}

Command& Command::footer(const std::string& text) {
  app_->footer(text);
  return *this;
}

Command Command::subcommand(const std::string& name, const std::string& help) {
  app_->require_subcommand(0, 1);  // CommandLine::run complains, with a better message
  return Command(*app_->add_subcommand(name, help), *bodies_);
}

void Command::runs(std::function<ExitStatus()> body) { (*bodies_)[app_] = std::move(body); }

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("nvpi: NVMe with end-to-end protection information, from user space.",
                                      "nvpi")) {
  app_->require_subcommand(0, 1);
  app_->set_version_flag("--version", "nvpi " NVPI_VERSION);
  app_->get_formatter()->column_width(34);
  app_->footer("Exit status: 0 ok, 1 NVMe status, 2 usage, 3 guard, 4 application tag, 5 reference tag,\n"
               "6 storage tag, 7 compare failure, 8 operating system. `nvpi COMMAND --help` shows options.");
}

CommandLine::~CommandLine() = default;

Command CommandLine::command(const std::string& name, const std::string& group, const std::string& help) {
  CLI::App* command = app_->add_subcommand(name, help);
  command->group(group);
  return Command(*command, bodies_);
}

ExitStatus CommandLine::run(int argc, const char* const* argv) {
  const CLI::App* app = app_.get();  // then the command that runs
  if (const char* word = unknown_command(app, argc, argv)) {
    return complain("'" + std::string(word) + "' is no command: use one of " + names_of_commands(*app));
  }
  app = app_.get();
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    app_->exit(help);
    return ExitStatus::ok;
  } catch (const CLI::ParseError& error) {
    return complain(error.what());
  }
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const auto body = bodies_.find(app);
  if (body == bodies_.end()) {
    return complain("a command is missing: use one of " + names_of_commands(*app) + "; `" + full_name(*app) +
                    " --help` shows more");
  }
  const CLI::Option* device = app->get_option_no_throw("device");
  if (device != nullptr && device->count() == 0) {
    return complain("a device is missing: /dev/ngXnY or emu:..., see `" + full_name(*app) + " --help`");
  }
  return body->second();
}

}  // namespace nvpi::cli
