#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/report.h"
#include "nvme/namespace.h"

namespace nvpi::cli {
namespace {

constexpr std::uint64_t chunk_size = 8u << 20;    // bytes on their way between file and device
constexpr std::size_t mismatch_limit = 100'000;   // kept for the report; all are counted

// What the options mean on this namespace.
struct Plan {
  Io io;                        // without memory
  std::uint64_t data_stride;    // bytes a block in the data file
  bool interleaved = false;     // ... of which the last are its metadata
};

// The memory of one chunk, in the shape of the files.
class ChunkBuffer {
 public:
  ChunkBuffer(const PiFormat& format, const Plan& plan, bool with_metadata, std::uint64_t blocks)
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
  const Plan& plan_;
  std::vector<std::byte> data_, metadata_;
  std::vector<iovec> data_pieces_, metadata_pieces_;
};

// The checks that the device is asked for. What can fail by the user's own choice is only checked if asked:
// the application tag of a read is anybody's, unless one is given.
PiChecks device_checks(const IoOptions& options, PiOwner pi, const PiFormat& format) {
  PiChecks checks = PiChecks::none();
  if (options.prinfo) {
    checks = {.guard = (*options.prinfo & 4) != 0,
              .app_tag = (*options.prinfo & 2) != 0,
              .storage_tag = false,
              .ref_tag = (*options.prinfo & 1) != 0};
  } else if (pi == PiOwner::host || (pi == PiOwner::device && options.opcode == Opcode::read)) {
    const bool own_tags = options.opcode == Opcode::write;
    checks = {.guard = true,
              .app_tag = own_tags || options.app_tag.has_value(),
              .storage_tag = own_tags || options.storage_tag.has_value(),
              .ref_tag = true};
  }
  checks.storage_tag |= options.storage_tag_check;
  return applicable(checks, format);
}

tl::expected<Plan, std::string> make_plan(const IoOptions& options, const PiFormat& format) {
  const bool pract = options.prinfo && (*options.prinfo & 8) != 0;
  PiOwner pi = options.pi.value_or(pract                            ? PiOwner::device
                                   : options.metadata_file.empty() ? PiOwner::host
                                                                   : PiOwner::caller);
  if (options.prinfo && pract != (pi == PiOwner::device)) {
    return tl::make_unexpected(fmt::format("--prinfo {} and --pi contradict each other about PRACT",
                                           *options.prinfo));
  }
  const bool has_metadata_file = !options.metadata_file.empty();
  if (has_metadata_file && format.metadata_size() == 0) {
    return tl::make_unexpected(std::string("the namespace has no metadata; leave --metadata out"));
  }
  const bool raw = pi == PiOwner::caller && format.metadata_size() > 0;
  if (raw && !format.extended() && !has_metadata_file && options.opcode == Opcode::write) {
    return tl::make_unexpected(
        fmt::format("--pi none needs --metadata FILE with {} bytes a block", format.metadata_size()));
  }
  Plan plan{.io = {.opcode = options.opcode,
                   .slba = options.start_block,
                   .pi = pi,
                   .checks = {.app_tag = options.app_tag.has_value(),
                              .storage_tag = options.storage_tag.has_value()},
                   .device_checks = device_checks(options, pi, format),
                   .app_tag = options.app_tag.value_or(0),
                   .app_tag_mask = options.app_tag_mask.value_or(0xFFFF),
                   .storage_tag = options.storage_tag.value_or(0),
                   .ref_tag = options.ref_tag,
                   .allow_unprotected = options.allow_unprotected,
                   .force_unit_access = options.force_unit_access,
                   .limited_retry = options.limited_retry},
            .data_stride = format.data_size(),
            .interleaved = raw && format.extended() && !has_metadata_file};
  if (plan.interleaved) plan.data_stride += format.metadata_size();
  return plan;
}

// How many blocks a number of bytes is; a part of a block is refused with the sizes beside it.
tl::expected<std::uint64_t, std::string> blocks_in(std::uint64_t bytes, std::uint64_t stride,
                                                   const std::string& what) {
  if (bytes == 0) return tl::make_unexpected(fmt::format("{} is empty: nothing to transfer", what));
  const std::uint64_t blocks = bytes / stride;
  if (bytes % stride == 0) return blocks;
  const std::string neighbours = blocks == 0 ? fmt::format("{}", stride)
                                             : fmt::format("{} or {}", blocks * stride, (blocks + 1) * stride);
  return tl::make_unexpected(fmt::format("{} is {} bytes, which is no multiple of the block's {}: use {}",
                                         what, bytes, stride, neighbours));
}

// The block count from the options, checked against --data-size and, for a write, the file's length.
tl::expected<std::uint64_t, std::string> count_blocks(const IoOptions& options, const Namespace& ns,
                                                      const Plan& plan, const InputFile* input) {
  std::optional<std::uint64_t> count = options.block_count;
  if (count == 0) return tl::make_unexpected(std::string("--blocks 0: nothing to transfer"));
  if (options.data_size) {
    const auto sized = blocks_in(*options.data_size, plan.data_stride, "--data-size");
    if (!sized) return sized;
    if (count && *count != *sized) {
      return tl::make_unexpected(fmt::format("--data-size is {}, but {} blocks are exactly {} bytes",
                                             *options.data_size, *count, *count * plan.data_stride));
    }
    count = *sized;
  }
  if (input != nullptr) {
    if (!count) return blocks_in(input->size(), plan.data_stride, options.data_file);
    if (input->size() / plan.data_stride < *count) {
      return tl::make_unexpected(fmt::format("{} has {} bytes, but {} blocks need {}", options.data_file,
                                             input->size(), *count, *count * plan.data_stride));
    }
  }
  if (!count && options.start_block >= ns.block_count()) {
    return tl::make_unexpected(fmt::format("LBA {} is outside the namespace, whose last LBA is {}",
                                           options.start_block, ns.block_count() - 1));
  }
  return count.value_or(ns.block_count() - options.start_block);
}

// One run of the command: chunk by chunk between files and device.
class Transfer {
 public:
  Transfer(const IoOptions& options, Namespace& ns, Plan plan)
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
        return report_device_finding(options_.common, error, ns_.format(), mismatches_);
      }
    }
    return report(options_.common, error, ns_.format(), mismatches_);
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
      fmt::print("{}\n", json.dump(2));
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
  Plan plan_;
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

tl::expected<void, std::string> check_metadata_size(const IoOptions& options, const PiFormat& format,
                                                    std::uint64_t blocks, const InputFile& metadata) {
  const std::uint64_t needed = blocks * format.metadata_size();
  if (metadata.size() >= needed) return {};
  return tl::make_unexpected(fmt::format("{} has {} bytes, but the metadata of {} blocks is {}",
                                         options.metadata_file, metadata.size(), blocks, needed));
}

}  // namespace

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
  // Files first: a missing one is found before the device is touched.
  std::optional<InputFile> data_in, metadata_in;
  const std::pair<const std::string&, std::optional<InputFile>&> inputs[] = {
      {options.data_file, data_in}, {options.metadata_file, metadata_in}};
  for (const auto& [path, input] : inputs) {
    if (!writes || path.empty()) continue;
    auto opened = InputFile::open(path);
    if (!opened) return report_system(options.common, path, opened.error());
    input = std::move(*opened);
  }

  const auto ns = Namespace::open(options.common.device);
  if (!ns) return report(options.common, ns.error());
  report_fallbacks(options.common, (*ns)->fallbacks());
  auto plan = make_plan(options, (*ns)->format());
  if (!plan) return report_usage(options.common, plan.error());
  const auto blocks = count_blocks(options, **ns, *plan, data_in ? &*data_in : nullptr);
  if (!blocks) return report_usage(options.common, blocks.error());
  plan->io.block_count = *blocks;
  if (metadata_in) {
    const auto sized = check_metadata_size(options, (*ns)->format(), *blocks, *metadata_in);
    if (!sized) return report_usage(options.common, sized.error());
  }
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

}  // namespace nvpi::cli
