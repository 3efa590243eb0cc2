// The command line, parsed. Option names, letters and value syntax are nvme-cli's where it has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "cli/exit_status.h"
#include "nvme/io.h"

namespace nvpi::cli {

enum class OutputFormat : std::uint8_t { normal, json };

struct CommonOptions {
  std::string device;  // /dev/ngXnY or emu:...
  OutputFormat output = OutputFormat::normal;
  bool verbose = false;
};

struct IoOptions {
  CommonOptions common;
  Opcode opcode = Opcode::read;
  std::uint64_t start_block = 0;
  std::optional<std::uint64_t> block_count;  // from the 0's based -c or the one-based --blocks
  std::optional<std::uint64_t> data_size;
  std::string data_file = "-";
  std::string metadata_file;  // empty: none given
  std::optional<PiOwner> pi;
  std::optional<std::uint8_t> prinfo;  // PRACT 8, guard 4, application tag 2, reference tag 1
  std::optional<std::uint16_t> app_tag;
  std::optional<std::uint16_t> app_tag_mask;
  std::optional<std::uint64_t> ref_tag;
  std::optional<std::uint64_t> storage_tag;
  bool storage_tag_check = false;
  bool allow_unprotected = false;
  bool force_unit_access = false;
  bool limited_retry = false;
};

struct IdNsOptions {
  CommonOptions common;
};

struct RaceOptions {
  CommonOptions common;
  std::uint64_t writes = 3000;  // in each mode
  std::uint64_t depth = 16;
  std::uint64_t seed = 0;
  bool force = false;  // on a real device
};

using Options = std::variant<IoOptions, IdNsOptions, RaceOptions>;

// Parses, and prints help or a complaint itself; then there is only an exit status.
std::variant<Options, ExitStatus> parse_command_line(int argc, const char* const* argv);

}  // namespace nvpi::cli
