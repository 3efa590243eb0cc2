// The options of the commands that move or name blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "nvme/io.h"

namespace nvpi::cli {

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

void add_io_options(Command& command, IoOptions& io);

}  // namespace nvpi::cli
