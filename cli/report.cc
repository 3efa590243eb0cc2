#include "cli/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/files.h"

namespace nvpi::cli {
namespace {

constexpr std::size_t mismatch_lines = 16;

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

nlohmann::json json_of(const PiMismatch& mismatch, const Finding& finding) {
  const PiFormat& format = finding.format;
  return {{"lba", mismatch.lba},
          {"block", mismatch.block_index},
          {"byte_offset", mismatch.block_index * finding.data_stride},
          {"tag", name_of(mismatch.tag)},
          {"stored", tag_text(mismatch.tag, mismatch.stored, format)},
          {"computed", tag_text(mismatch.tag, mismatch.computed, format)},
          {"tuple", tuple_text(mismatch.tuple, format)}};
}

nlohmann::json json_of(const Error& error) {
  nlohmann::json json{{"error", describe(error)},
                      {"type", kind_of(error)},
                      {"exit_status", static_cast<int>(exit_status_of(error))}};
  if (error.code == Errc::status) {
    json["value"] = error.status.raw();
    json["sct"] = error.status.sct();
    json["sc"] = error.status.sc();
    json["dnr"] = error.status.dnr();
  }
  if (error.os_errno != 0) json["errno"] = error.os_errno;
  return json;
}


// A headline, the blocks that are wrong, and how far the work got.
void print_finding(const CommonOptions& common, nlohmann::json json, const std::string& headline,
                   const Finding& finding) {
  if (common.output == OutputFormat::json) {
    json["mismatches"] = nlohmann::json::array();
    for (const PiMismatch& mismatch : finding.mismatches) json["mismatches"].push_back(json_of(mismatch, finding));
    json["next_lba"] = finding.next_lba;
    json["blocks_left"] = finding.left;
    print_json(json);
    return;
  }
  fmt::print(stderr, "nvpi: {}\n", headline);
  for (std::size_t i = 0; i < std::min(finding.mismatches.size(), mismatch_lines); ++i) {
    fmt::print(stderr, "  {}\n", describe(finding.mismatches[i], finding.format, finding.data_stride));
  }
  if (finding.mismatches.size() > mismatch_lines) {
    fmt::print(stderr, "  ... and {} more; -o json lists them\n", finding.mismatches.size() - mismatch_lines);
  }
  if (finding.left > 0) {
    fmt::print(stderr, "  stopped at LBA {}; {} blocks not read\n", finding.next_lba, finding.left);
  }
}

ExitStatus report_text(const CommonOptions& common, const std::string& message, std::string_view type,
                       ExitStatus status) {
  if (common.output == OutputFormat::json) {
    print_json({{"error", message}, {"type", type}, {"exit_status", static_cast<int>(status)}});
  } else {
    fmt::print(stderr, "nvpi: {}\n", message);
  }
  return status;
}

}  // namespace

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

ExitStatus report(const CommonOptions& common, const Error& error) {
  if (common.output == OutputFormat::json) {
    print_json(json_of(error));
  } else {
    fmt::print(stderr, "nvpi: {}\n", describe(error));
  }
  return exit_status_of(error);
}

ExitStatus report(const CommonOptions& common, const Error& error, const Finding& finding) {
  if (error.code != Errc::pi_mismatch) return report(common, error);
  const bool one = error.mismatch_count == 1;
  print_finding(common, json_of(error),
                fmt::format("{} block{} not match {} protection information", error.mismatch_count,
                            one ? " does" : "s do", one ? "its" : "their"),
                finding);
  return exit_status_of(error);
}

ExitStatus report_device_finding(const CommonOptions& common, const Error& error, const Finding& finding) {
  print_finding(common, json_of(error),
                fmt::format("{}; read again without the device's checks, the host finds{}", describe(error),
                            finding.mismatches.empty() ? " nothing wrong" : ":"),
                finding);
  return exit_status_of(error);
}

ExitStatus report_usage(const CommonOptions& common, const std::string& message) {
  return report_text(common, message, "usage", ExitStatus::usage);
}

ExitStatus report_system(const CommonOptions& common, const std::string& what, int os_errno) {
  return report_text(common, fmt::format("{}: {}", what, std::strerror(os_errno)), "system",
                     ExitStatus::system);
}

void report_fallbacks(const CommonOptions& common, const Fallbacks& fallbacks) {
  for (unsigned i = 0; i < fallback_count; ++i) {
    const auto fallback = static_cast<Fallback>(i);
    if (!fallbacks.test(i)) continue;
    if (fallback == Fallback::io_command_set_id || common.verbose) {
      fmt::print(stderr, "nvpi: note: {}\n", describe(fallback));
    }
  }
}

Progress::Progress(std::string what, std::uint64_t total_bytes)
    : what_(std::move(what)),
      total_(std::max<std::uint64_t>(total_bytes, 1)),
      started_ns_(now_ns()),
      shown_ns_(started_ns_),
      terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(std::uint64_t done_bytes) {
  const std::int64_t now = now_ns();
  if (!terminal_ || now - shown_ns_ < 500'000'000) return;
  shown_ns_ = now;
  shown_ = true;
  const double seconds = static_cast<double>(now - started_ns_) / 1e9;
  const double rate = static_cast<double>(done_bytes) / seconds;
  const double left = static_cast<double>(total_ - std::min(done_bytes, total_)) / std::max(rate, 1.0);
  fmt::print(stderr, "\r\033[K{} {:3d} %  {:.0f} MiB/s  {:.0f} s left", what_, done_bytes * 100 / total_,
             rate / (1 << 20), left);
  std::fflush(stderr);
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt(); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: waiting for a pipe ends, too
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace nvpi::cli
