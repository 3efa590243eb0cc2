#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/io_plan.h"
#include "cli/report.h"
#include "nvme/emulated_namespace.h"
#include "nvme/namespace.h"

namespace nvpi::cli {
namespace {

constexpr std::uint64_t chunk_size = 8u << 20;    // bytes on their way between file and device
constexpr std::size_t mismatch_limit = 100'000;   // kept for the report; all are counted

// The memory of one chunk, in the shape of the files.
class ChunkBuffer {
 public:
  ChunkBuffer(const PiFormat& format, const IoPlan& plan, bool with_metadata, std::uint64_t blocks)
      : format_(format),
        plan_(plan),
        data_(blocks * plan.data_stride),
        metadata_(with_metadata ? blocks * format.metadata_size() : 0) {
    if (!plan.interleaved) return;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      std::byte* const block = &data_[i * plan.data_stride];
      data_pieces_.push_back({block, format.data_size()});
      metadata_pieces_.push_back({block + format.data_size(), format.metadata_size()});
    }
  }

  std::span<std::byte> data(std::uint64_t blocks) { return {data_.data(), blocks * plan_.data_stride}; }
  std::span<std::byte> metadata(std::uint64_t blocks) {
    return {metadata_.data(), metadata_.empty() ? 0 : blocks * format_.metadata_size()};
  }
  UserBlocks memory(std::uint64_t blocks) {
    if (plan_.interleaved) {
      return {UserMemory(std::span(data_pieces_).first(blocks)),
              UserMemory(std::span(metadata_pieces_).first(blocks))};
    }
    return {UserMemory(data(blocks)), UserMemory(metadata(blocks))};
  }

 private:
  const PiFormat& format_;
  const IoPlan& plan_;
  std::vector<std::byte> data_, metadata_;
  std::vector<iovec> data_pieces_, metadata_pieces_;
};

// One run of the command: chunk by chunk between files and device.
class Transfer {
 public:
  Transfer(const IoOptions& options, Namespace& ns, IoPlan plan)
      : options_(options), ns_(ns), plan_(std::move(plan)) {}

  ExitStatus run(InputFile* data_in, InputFile* metadata_in, OutputFile* data_out, OutputFile* metadata_out) {
    const std::uint64_t total = plan_.io.block_count;
    const std::uint64_t chunk_blocks = std::min(total, std::max<std::uint64_t>(1, chunk_size / plan_.data_stride));
    const bool with_metadata = metadata_in != nullptr || metadata_out != nullptr;
    ChunkBuffer buffer(ns_.format(), plan_, with_metadata, chunk_blocks);
    Progress progress(plan_.io.opcode == Opcode::write ? "write" : "read", total * plan_.data_stride);
    for (done_ = 0; done_ < total;) {
      if (interrupted()) return stopped();
      const std::uint64_t blocks = std::min(chunk_blocks, total - done_);
      if (data_in != nullptr) {
        if (const int error = data_in->read(buffer.data(blocks)); error != 0) {
          return report_system(options_.common, options_.data_file, error);
        }
      }
      if (metadata_in != nullptr) {
        if (const int error = metadata_in->read(buffer.metadata(blocks)); error != 0) {
          return report_system(options_.common, options_.metadata_file, error);
        }
      }
      const auto moved = move(buffer, blocks);
      const std::uint64_t good = moved ? blocks : good_blocks(moved.error());
      for (OutputFile* out : {data_out, metadata_out}) {
        if (out == nullptr || good == 0) continue;
        const auto bytes = out == data_out ? buffer.data(good) : buffer.metadata(good);
        if (const int error = out->write(bytes); error != 0) {
          return report_system(options_.common, out->path(), error);
        }
      }
      if (!moved) return failed(moved.error(), blocks);
      counts_ += *moved;
      done_ += blocks;
      progress.at(done_ * plan_.data_stride);
    }
    return finished();
  }

 private:
  // The blocks at the current place, with or without the memory that they go to.
  Io chunk(std::uint64_t blocks) {
    Io io = plan_.io;
    io.slba += done_;
    io.block_count = blocks;
    if (io.ref_tag) io.ref_tag = ns_.format().ref_tag_at(*io.ref_tag, done_);
    io.on_mismatch = keep_;
    return io;
  }

  Result<VerifyCounts> move(ChunkBuffer& buffer, std::uint64_t blocks) {
    Io io = chunk(blocks);
    io.memory = buffer.memory(blocks);
    auto moved = ns_.transfer(io);
    sort_mismatches();
    return moved;
  }

  void sort_mismatches() {
    std::sort(mismatches_.begin(), mismatches_.end(),
              [](const PiMismatch& a, const PiMismatch& b) { return a.lba < b.lba; });
  }

  // The blocks of the chunk before the first one that is bad. Commands are sent in the order of their
  // addresses, so everything before the lowest failure was delivered.
  std::uint64_t good_blocks(const Error& error) const {
    const std::uint64_t start = plan_.io.slba + done_;
    std::uint64_t bad = error.code == Errc::pi_mismatch ? error.mismatch.lba : std::max(error.slba, start);
    if (!mismatches_.empty()) bad = std::min(bad, mismatches_.front().lba);
    return bad - start;
  }

  ExitStatus failed(const Error& error, std::uint64_t blocks) {
    const bool told_by_device = error.code == Errc::status && error.status.is_pi_error() &&
                                plan_.io.opcode == Opcode::read && error.block_count > 0;
    if (told_by_device) {
      // The device says which command, not which block: find it, if the host can.
      mismatches_.clear();
      const auto again = ns_.recheck(chunk(blocks), error);
      sort_mismatches();
      if (again || again.error().code == Errc::pi_mismatch) {
        return report_device_finding(options_.common, error, finding(error.slba + error.block_count));
      }
    }
    return report(options_.common, error, finding(plan_.io.slba + done_ + blocks));
  }

  Finding finding(std::uint64_t next_lba) const {
    return {.format = ns_.format(),
            .mismatches = mismatches_,
            .data_stride = plan_.data_stride,
            .next_lba = next_lba,
            .left = plan_.io.slba + plan_.io.block_count - next_lba};
  }

  ExitStatus stopped() const {
    return report_system(options_.common,
                         fmt::format("{} of {} blocks done, stopped at LBA {}", done_, plan_.io.block_count,
                                     plan_.io.slba + done_),
                         EINTR);
  }

  ExitStatus finished() const {
    const bool writes = plan_.io.opcode == Opcode::write;
    if (options_.common.output == OutputFormat::json) {
      nlohmann::json json{{"slba", plan_.io.slba},
                          {"blocks", plan_.io.block_count},
                          {"bytes", plan_.io.block_count * plan_.data_stride},
                          {"exit_status", 0}};
      if (!writes) {
        json["verified"] = counts_.verified;
        json["unprotected"] = counts_.unprotected;
      }
      print_json(json);
    } else if (writes) {
      fmt::print(stderr, "wrote {} blocks at LBA {}\n", plan_.io.block_count, plan_.io.slba);
    } else {
      fmt::print(stderr, "read {} blocks at LBA {}{}\n", plan_.io.block_count, plan_.io.slba,
                 plan_.io.pi == PiOwner::host ? fmt::format(": {} verified, {} unprotected",
                                                            counts_.verified, counts_.unprotected)
                                              : std::string());
    }
    return ExitStatus::ok;
  }

  const IoOptions& options_;
  Namespace& ns_;
  IoPlan plan_;
  std::uint64_t done_ = 0;
  VerifyCounts counts_;
  std::vector<PiMismatch> mismatches_;
  // Reports a mismatch by its place in the whole transfer. Commands refer to it.
  struct Keep {
    Transfer* self;
    bool operator()(const PiMismatch& mismatch) const {
      auto& kept = self->mismatches_;
      if (kept.size() >= mismatch_limit) return true;
      kept.push_back(mismatch);
      kept.back().block_index = static_cast<std::uint32_t>(mismatch.lba - self->plan_.io.slba);
      return true;
    }
  } keep_{this};
};

// Two roles for one file: the streams would mix, or an image would be overwritten with what is read from it.
std::string find_clash(const IoOptions& options) {
  constexpr std::string_view emulated = "emu:";
  const std::string& device = options.common.device;
  std::string medium = device;
  if (device.starts_with(emulated)) {
    const auto parsed = EmulatedNamespace::parse(std::string_view(device).substr(emulated.size()));
    medium = parsed ? parsed->file : std::string();
  }
  if (!options.metadata_file.empty() && is_same_file(options.data_file, options.metadata_file)) {
    return "--data and --metadata are the same file";
  }
  for (const std::string& file : {options.data_file, options.metadata_file}) {
    if (!file.empty() && !medium.empty() && is_same_file(file, medium)) {
      return fmt::format("{} is the namespace itself, it cannot be its own file", file);
    }
  }
  return {};
}

ExitStatus run(const IoOptions& options) {
  const bool writes = options.opcode == Opcode::write;
  if (!writes && options.data_file == "-") {
    if (options.common.output == OutputFormat::json) {
      return report_usage(options.common, "-o json needs --data FILE: standard output carries the data");
    }
    if (isatty(STDOUT_FILENO) != 0) {
      return report_usage(options.common, "the data would go to the terminal; use --data FILE or redirect");
    }
  }
  if (const auto clash = find_clash(options); !clash.empty()) return report_usage(options.common, clash);

  // Files first: a missing one is found before the device is touched.
  std::optional<InputFile> data_in, metadata_in;
  const std::pair<const std::string&, std::optional<InputFile>&> inputs[] = {
      {options.data_file, data_in}, {options.metadata_file, metadata_in}};
  for (const auto& [path, input] : inputs) {
    if (!writes || path.empty()) continue;
    auto opened = InputFile::open(path);
    if (!opened) return report_system(options.common, opened.error().path, opened.error().os_errno);
    input = std::move(*opened);
  }

  const auto ns = Namespace::open(options.common.device);
  if (!ns) return report(options.common, ns.error());
  report_fallbacks(options.common, (*ns)->fallbacks());
  auto plan = make_plan(options, **ns, data_in ? &*data_in : nullptr, metadata_in ? &*metadata_in : nullptr);
  if (!plan) return report_usage(options.common, plan.error());
  if (const auto checked = check_request(plan->io, (*ns)->geometry()); !checked) {
    return report(options.common, checked.error());
  }

  OutputFile data_out(options.data_file);
  OutputFile metadata_out(options.metadata_file);
  Transfer transfer(options, **ns, std::move(*plan));
  return transfer.run(data_in ? &*data_in : nullptr, metadata_in ? &*metadata_in : nullptr,
                      writes ? nullptr : &data_out,
                      writes || options.metadata_file.empty() ? nullptr : &metadata_out);
}

}  // namespace

void add_read_and_write(CommandLine& line) {
  const auto add = [&line](Opcode opcode, const char* name, const char* help) {
    const auto io = std::make_shared<IoOptions>();
    io->opcode = opcode;
    Command command = line.command(name, "Blocks", help);
    add_io_options(command, *io);
    command.runs<IoOptions>(io, run);
  };
  add(Opcode::read, "read", "read blocks and verify their protection information");
  add(Opcode::write, "write", "write blocks with protection information");
}

}  // namespace nvpi::cli
