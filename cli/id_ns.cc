#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "nvme/namespace.h"
#include "pi/guard.h"

namespace nvpi::cli {
namespace {

// The keys are those of `nvme id-ns -o json` and `nvme nvm-id-ns -o json`; what nvpi adds is under "nvpi".
nlohmann::json json_of(const Namespace& ns) {
  const NamespaceInfo& info = ns.info();
  const PiFormat& format = ns.format();
  nlohmann::json json{{"nsze", info.nsze},   {"ncap", info.ncap},   {"nuse", info.nuse},
                      {"nsfeat", info.nsfeat}, {"nlbaf", info.nlbaf}, {"flbas", info.flbas},
                      {"mc", info.mc},       {"dpc", info.dpc},     {"dps", info.dps},
                      {"dlfeat", info.dlfeat}, {"noiob", info.noiob}};
  for (std::size_t i = 0; i < info.lba_formats.size(); ++i) {
    const LbaFormat& lba_format = info.lba_formats[i];
    json["lbafs"].push_back({{"lbaf", i},
                             {"ms", lba_format.metadata_size},
                             {"ds", lba_format.data_size_log2},
                             {"rp", lba_format.relative_performance},
                             {"in_use", i == info.lba_format_index ? 1 : 0}});
    if (!info.has_extension) continue;
    json["elbafs"].push_back(
        {{"sts", lba_format.storage_tag_size}, {"pif", lba_format.pif}, {"qpif", lba_format.qpif}});
  }
  if (info.has_extension) {
    json["lbstm"] = info.lbstm;
    json["pic"] = info.pic;
    json["pifa"] = info.pifa;
  }
  nlohmann::json& own = json["nvpi"];
  own = {{"nsid", info.nsid},
         {"data_size", format.data_size()},
         {"metadata_size", format.metadata_size()},
         {"metadata", format.metadata_size() == 0 ? "none" : format.extended() ? "extended" : "separate"},
         {"pi_type", static_cast<unsigned>(format.type())},
         {"max_blocks_per_command", max_blocks_per_command(ns.geometry(), PiOwner::host)},
         {"description", describe(format)}};
  if (format.has_pi()) {
    own["guard"] = name_of(format.guard());
    own["pi_position"] = format.position() == PiPosition::first ? "first" : "last";
    own["storage_tag_bits"] = format.storage_tag_size();
    own["reference_tag_bits"] = format.ref_tag_size();
    own["guard_implementation"] = guard_implementation(format.guard());
  }
  return json;
}

void print_text(const CommonOptions& common, const Namespace& ns) {
  const NamespaceInfo& info = ns.info();
  const double gibibytes =
      static_cast<double>(info.nsze) * ns.format().data_size() / static_cast<double>(1ull << 30);
  fmt::print("namespace {} of {} ({}, firmware {})\n", info.nsid, common.device,
             ns.controller().model_number, ns.controller().firmware_revision);
  fmt::print("  size      {} blocks, {:.2f} GiB\n", info.nsze, gibibytes);
  fmt::print("  format    {}\n", describe(ns.format()));
  fmt::print("  transfer  at most {} blocks a command\n",
             max_blocks_per_command(ns.geometry(), PiOwner::host));
  if (ns.format().has_pi()) {
    fmt::print("  guard     computed by {}\n", guard_implementation(ns.format().guard()));
  }
  for (std::size_t i = 0; i < info.lba_formats.size(); ++i) {
    const LbaFormat& lba_format = info.lba_formats[i];
    if (lba_format.data_size_log2 == 0) continue;
    fmt::print("  lbaf {:>2}   {} + {} bytes{}\n", i, lba_format.data_size(), lba_format.metadata_size,
               i == info.lba_format_index ? " (in use)" : "");
  }
}

ExitStatus run(const CommonOptions& common) {
  const auto ns = Namespace::open(common.device);
  if (!ns) return report(common, ns.error());
  report_fallbacks(common, (*ns)->fallbacks());
  if (common.output == OutputFormat::json) {
    print_json(json_of(**ns));
  } else {
    print_text(common, **ns);
  }
  return ExitStatus::ok;
}

}  // namespace

void add_id_ns(CommandLine& line) {
  const auto common = std::make_shared<CommonOptions>();
  Command command = line.command("id-ns", "Namespaces", "show geometry and PI format of a namespace");
  command.device(*common);
  command.runs<CommonOptions>(common, run);
}

}  // namespace nvpi::cli
