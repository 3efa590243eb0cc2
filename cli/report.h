// What a command prints: one line or one JSON object, to the stream that the data does not use.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/describe.h"
#include "cli/command_line.h"

namespace nvpi::cli {

// One object on standard output. Text that is no UTF-8, such as a file name, is shown as far as it is.
void print_json(const nlohmann::json& json);

// What was found out about blocks, and how it is to be shown.
struct Finding {
  const PiFormat& format;
  const std::vector<PiMismatch>& mismatches;
  std::uint64_t data_stride;  // bytes a block in the user's data
  std::uint64_t next_lba;     // what follows was not looked at
  std::uint64_t left;         // ... and how many blocks that is
};

// One line on standard error, or in JSON an object on standard output. Returns the exit status.
ExitStatus report(const CommonOptions& common, const Error& error);
// The same with every mismatch that was found.
ExitStatus report(const CommonOptions& common, const Error& error, const Finding& finding);
// A read that the device refused with a PI error, and what the host found on reading it again without the
// device's checks: mismatches, or none.
ExitStatus report_device_finding(const CommonOptions& common, const Error& error, const Finding& finding);
ExitStatus report_usage(const CommonOptions& common, const std::string& message);
ExitStatus report_system(const CommonOptions& common, const std::string& what, int os_errno);

// Says once what the driver has to do without: always if it changes results, else with --verbose.
void report_fallbacks(const CommonOptions& common, const Fallbacks& fallbacks);

// A progress line on standard error while it is a terminal and the work takes long; removed at the end.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total_bytes);
  ~Progress();
  void at(std::uint64_t done_bytes);

 private:
  std::string what_;
  std::uint64_t total_;
  std::int64_t started_ns_;
  std::int64_t shown_ns_;
  bool terminal_;
  bool shown_ = false;
};

// Lets Ctrl-C (or a request to terminate) end work at the next safe point; see interrupted() in files.h. A
// second one ends the program.
void catch_interrupts();

}  // namespace nvpi::cli
