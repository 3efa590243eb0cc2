#include "cli/options.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <limits>

#include "nvme/number.h"

namespace nvpi::cli {
namespace {

// The last name of an option such as "-s,--start-block", for messages.
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

[[noreturn]] void refuse(const std::string& names, const std::string& why) {
  throw CLI::ValidationError(long_name(names) + ": " + why);
}

template <typename T>
T number_from(const std::string& names, const std::string& text, std::uint64_t limit, std::uint64_t least = 0) {
  const auto value = parse_number(text);
  if (!value) refuse(names, "'" + text + "' is not a number (such as 4096, 0x1000 or 4Ki)");
  if (*value > limit) refuse(names, text + " is too large: at most " + std::to_string(limit));
  if (*value < least) refuse(names, text + " is too small: at least " + std::to_string(least));
  return static_cast<T>(*value);
}

CLI::Option* add_file(CLI::App& command, const std::string& names, std::string& target,
                      const std::string& help) {
  const auto parse = [&target, names](const std::string& text) {
    if (text.empty()) refuse(names, "the file name is empty (an unset variable?); - is standard input or output");
    target = text;
  };
  return command.add_option_function<std::string>(names, parse, help)->type_name("FILE");
}

// A number option in nvme-cli's syntax. The target is a number, or an optional one to tell "not given".
template <typename T, typename Target>
CLI::Option* add_number(CLI::App& command, const std::string& names, Target& target, const std::string& help,
                        std::uint64_t limit = std::numeric_limits<T>::max(), std::uint64_t least = 0) {
  const auto parse = [&target, names, limit, least](const std::string& text) {
    target = number_from<T>(names, text, limit, least);
  };
  return command.add_option_function<std::string>(names, parse, help)->type_name("N");
}

template <typename Target, typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& names, Target& target,
                        std::vector<std::pair<std::string, T>> choices, const std::string& help) {
  std::string allowed;
  for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : "|") + name;
  const auto parse = [&target, names, choices, allowed](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name == text) {
        target = value;
        return;
      }
    }
    refuse(names, "'" + text + "' is not one of " + allowed);
  };
  return command.add_option_function<std::string>(names, parse, help)->type_name(allowed);
}

void add_common(CLI::App& command, CommonOptions& common) {
  command.add_option("device", common.device, "/dev/ngXnY, or emu:file=disk.img,ds=4096,ms=8,pi=1,size=64M");
  add_choice<OutputFormat, OutputFormat>(command, "-o,--output-format", common.output,
             {{"normal", OutputFormat::normal}, {"json", OutputFormat::json}}, "output format");
  command.add_flag("-v,--verbose", common.verbose, "say what the driver has to do without");
}

CLI::App* add_io(CLI::App& app, IoOptions& io, Opcode opcode, const std::string& name,
                 const std::string& help) {
  CLI::App* command = app.add_subcommand(name, help);
  io.opcode = opcode;
  add_common(*command, io.common);
  const bool writes = opcode == Opcode::write;
  add_number<std::uint64_t>(*command, "-s,--start-block", io.start_block, "first LBA (0)");
  auto* zero_based =
      command
          ->add_option_function<std::string>(
              "-c,--block-count",
              [&io](const std::string& text) { 
                io.block_count = number_from<std::uint64_t>("--block-count", text, 0xFFFF) + 1;
              },
              "blocks, 0's based: 7 means 8 blocks")
          ->type_name("N");
  add_number<std::uint64_t>(*command, "--blocks", io.block_count, "blocks, counted from 1")->excludes(zero_based);
  add_number<std::uint64_t>(*command, "-z,--data-size", io.data_size, "bytes of data");
  add_file(*command, "-d,--data", io.data_file,
           writes ? "file to write, - for standard input (-)" : "file to read into, - for standard output (-)");
  add_file(*command, "-M,--metadata", io.metadata_file,
           writes ? "file with the metadata; the PI in it is sent as it is" : "file for the metadata");
  add_choice<std::optional<PiOwner>, PiOwner>(
      *command, "--pi", io.pi,
      {{"host", PiOwner::host}, {"device", PiOwner::device}, {"none", PiOwner::caller}},
      "who makes and checks the PI: this driver, the device, nobody");
  add_number<std::uint8_t>(*command, "-p,--prinfo", io.prinfo, "PRACT 8 + checks by the device: guard 4, app 2, ref 1", 0xF);
  add_number<std::uint64_t>(*command, "-r,--ref-tag", io.ref_tag, "initial reference tag (low bits of the LBA)");
  add_number<std::uint16_t>(*command, "-a,--app-tag", io.app_tag, writes ? "application tag (0)" : "expected application tag");
  add_number<std::uint16_t>(*command, "-m,--app-tag-mask", io.app_tag_mask, "bits of the application tag to compare (0xffff)");
  add_number<std::uint64_t>(*command, "-g,--storage-tag", io.storage_tag, "storage tag");
  command->add_flag("-C,--storage-tag-check", io.storage_tag_check, "let the device check the storage tag");
  command->add_flag("-f,--force-unit-access", io.force_unit_access, "go to the medium, not to a cache");
  command->add_flag("-l,--limited-retry", io.limited_retry, "limit the device's own retries");
  if (writes) {
    command->add_flag("--allow-unprotected", io.allow_unprotected,
                      "permit application tag 0xffff, which switches checking off");
  }
  return command;
}

CLI::App* add_race(CLI::App& app, RaceOptions& race) {
  CLI::App* command = app.add_subcommand(
      "race", "rewrite buffers of writes in flight (destroys data)");
  add_common(*command, race.common);
  add_number<std::uint64_t>(*command, "--writes", race.writes, "writes in each mode (3000)", 1ull << 32, 1);
  add_number<std::uint64_t>(*command, "--depth", race.depth, "writes in flight (16)", 1024, 1);
  add_number<std::uint64_t>(*command, "--seed", race.seed, "of the rewriting thread (0)");
  command->add_flag("--force", race.force, "overwrite the first blocks of a real device");
  return command;
}

ExitStatus complain(const std::string& message) {
  std::cerr << "nvpi: " << message << '\n';
  return ExitStatus::usage;
}

// A word in the place of the command that is none of them.
bool is_unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  return app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[1]; }).empty();
}

}  // namespace

std::variant<Options, ExitStatus> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("nvpi: NVMe with end-to-end protection information, from user space.", "nvpi");
  app.require_subcommand(0, 1);  // checked below, with a better message
  app.set_version_flag("--version", "nvpi " NVPI_VERSION);
  app.get_formatter()->column_width(34);

  IoOptions read, write;
  IdNsOptions id_ns;
  RaceOptions race;
  const CLI::App* read_command =
      add_io(app, read, Opcode::read, "read", "read blocks and verify their protection information");
  const CLI::App* write_command =
      add_io(app, write, Opcode::write, "write", "write blocks with protection information");
  CLI::App* id_ns_command = app.add_subcommand("id-ns", "show geometry and PI format of a namespace");
  add_common(*id_ns_command, id_ns.common);
  const CLI::App* race_command = add_race(app, race);
  app.footer("Exit status: 0 ok, 1 NVMe status, 2 usage, 3 guard, 4 application tag, 5 reference tag,\n"
             "6 storage tag, 7 compare failure, 8 operating system. `nvpi COMMAND --help` shows options.");
  if (is_unknown_command(app, argc, argv)) {
    return complain("'" + std::string(argv[1]) + "' is no command: use read, write, id-ns or race");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return ExitStatus::ok;
  } catch (const CLI::ParseError& error) {
    return complain(error.what());
  }
  if (app.get_subcommands().empty()) {
    return complain("a command is missing: use read, write, id-ns or race; `nvpi --help` shows more");
  }
  const CLI::App* chosen = app.get_subcommands().front();
  if (chosen->count("device") == 0) {
    return complain("a device is missing: /dev/ngXnY or emu:..., see `nvpi " + chosen->get_name() + " --help`");
  }
  if (read_command->parsed()) return Options(read);
  if (write_command->parsed()) return Options(write);
  if (race_command->parsed()) return Options(race);
  return Options(id_ns);
}

}  // namespace nvpi::cli
