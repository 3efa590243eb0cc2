#include "cli/options.h"

#include <CLI/CLI.hpp>

#include <limits>

#include "nvme/number.h"

namespace nvpi::cli {
namespace {

template <typename T>
T number_from(const std::string& text, std::uint64_t limit) {
  const auto value = parse_number(text);
  if (!value) {
    throw CLI::ValidationError("'" + text + "' is not a number (such as 4096, 0x1000 or 4Ki)");
  }
  if (*value > limit) {
    throw CLI::ValidationError(text + " is too large: at most " + std::to_string(limit));
  }
  return static_cast<T>(*value);
}

// A number option in nvme-cli's syntax, kept apart from "not given".
template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& names, std::optional<T>& target,
                        const std::string& help, std::uint64_t limit = std::numeric_limits<T>::max()) {
  return command
      .add_option_function<std::string>(
          names, [&target, limit](const std::string& text) { target = number_from<T>(text, limit); }, help)
      ->type_name("N");
}

template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& names, T& target, const std::string& help,
                        std::uint64_t limit = std::numeric_limits<T>::max()) {
  return command
      .add_option_function<std::string>(
          names, [&target, limit](const std::string& text) { target = number_from<T>(text, limit); }, help)
      ->type_name("N");
}

template <typename Target, typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& names, Target& target,
                        std::vector<std::pair<std::string, T>> choices, const std::string& help) {
  std::string allowed;
  for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : "|") + name;
  const auto parse = [&target, choices, allowed](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name == text) {
        target = value;
        return;
      }
    }
    throw CLI::ValidationError("'" + text + "' is not one of " + allowed);
  };
  return command.add_option_function<std::string>(names, parse, help)->type_name(allowed);
}

void add_common(CLI::App& command, CommonOptions& common) {
  command.add_option("device", common.device, "/dev/ngXnY, or emu:file=disk.img,ds=4096,ms=8,pi=1,size=64M")
      ->required();
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
  add_number(*command, "-s,--start-block", io.start_block, "first LBA (0)");
  auto* zero_based =
      command
          ->add_option_function<std::string>(
              "-c,--block-count",
              [&io](const std::string& text) { io.block_count = number_from<std::uint64_t>(text, 0xFFFF) + 1; },
              "blocks, 0's based: 7 means 8 blocks")
          ->type_name("N");
  add_number(*command, "--blocks", io.block_count, "blocks, counted from 1")->excludes(zero_based);
  add_number(*command, "-z,--data-size", io.data_size, "bytes of data");
  command
      ->add_option("-d,--data", io.data_file,
                   writes ? "file to write, - for standard input (-)" : "file to read into, - for standard output (-)")
      ->type_name("FILE");
  command
      ->add_option("-M,--metadata", io.metadata_file,
                   writes ? "file with the metadata; the PI in it is sent as it is" : "file for the metadata")
      ->type_name("FILE");
  add_choice<std::optional<PiOwner>, PiOwner>(
      *command, "--pi", io.pi,
      {{"host", PiOwner::host}, {"device", PiOwner::device}, {"none", PiOwner::caller}},
      "who makes and checks the PI: this driver (default), the device (PRACT), or nobody");
  add_number(*command, "-p,--prinfo", io.prinfo, "PRACT 8 + checks by the device: guard 4, app 2, ref 1", 0xF);
  add_number(*command, "-r,--ref-tag", io.ref_tag, "initial reference tag (low bits of the LBA)");
  add_number(*command, "-a,--app-tag", io.app_tag, writes ? "application tag (0)" : "expected application tag");
  add_number(*command, "-m,--app-tag-mask", io.app_tag_mask, "bits of the application tag to compare (0xffff)");
  add_number(*command, "-g,--storage-tag", io.storage_tag, "storage tag");
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
      "race", "write while another thread rewrites the buffers: zero-copy against bounce (destroys data)");
  add_common(*command, race.common);
  add_number(*command, "--writes", race.writes, "writes in each mode (3000)", 1ull << 32)
      ->check(CLI::PositiveNumber);
  add_number(*command, "--depth", race.depth, "writes in flight (16)", 1024)->check(CLI::PositiveNumber);
  add_number(*command, "--seed", race.seed, "of the rewriting thread (0)");
  command->add_flag("--force", race.force, "overwrite the first blocks of a real device");
  return command;
}

}  // namespace

std::variant<Options, ExitStatus> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("nvpi: NVMe with end-to-end protection information, from user space.", "nvpi");
  app.require_subcommand(1);
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return ExitStatus::ok;
  } catch (const CLI::ParseError& error) {
    std::cerr << "nvpi: " << error.what() << '\n';
    return ExitStatus::usage;
  }
  if (read_command->parsed()) return Options(read);
  if (write_command->parsed()) return Options(write);
  if (race_command->parsed()) return Options(race);
  return Options(id_ns);
}

}  // namespace nvpi::cli
