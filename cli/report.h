// What a command prints: one line or one JSON object, to the stream that the data does not use.
#pragma once

#include <string>
#include <vector>

#include "cli/describe.h"
#include "cli/options.h"

namespace nvpi::cli {

// One line on standard error, or in JSON an object on standard output. Returns the exit status.
ExitStatus report(const CommonOptions& common, const Error& error);
// The same with every mismatch that was found, and the format that they belong to.
ExitStatus report(const CommonOptions& common, const Error& error, const PiFormat& format,
                  const std::vector<PiMismatch>& mismatches);
// A read that the device refused with a PI error, and what the host found on reading it again without the
// device's checks: mismatches, or none.
ExitStatus report_device_finding(const CommonOptions& common, const Error& error, const PiFormat& format,
                                 const std::vector<PiMismatch>& mismatches);
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

// Whether the user pressed Ctrl-C (or asked to terminate). The first one ends work at the next safe point;
// a second one ends the program.
void catch_interrupts();
bool interrupted();

}  // namespace nvpi::cli
