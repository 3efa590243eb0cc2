// The reason for bouncing, shown: another thread rewrites the buffers of writes in flight.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/report.h"
#include "nvme/namespace.h"

namespace nvpi::cli {
namespace {

struct RaceOptions {
  CommonOptions common;
  std::uint64_t writes = 3000;  // in each mode
  std::uint64_t depth = 16;
  std::uint64_t seed = 0;
  bool force = false;  // on a real device
};

struct Tally {
  std::uint64_t writes = 0;
  std::uint64_t guard_errors = 0;  // the device saw other bytes than the guard was made from
  std::uint64_t other_errors = 0;
  std::uint64_t damaged = 0;       // blocks on the medium whose guard does not match
};

// The application that does not wait: rewrites one word after the other of all buffers, for ever.
class Rewriter {
 public:
  Rewriter(std::vector<std::uint64_t>& words, const std::vector<std::size_t>& targets, std::uint64_t seed)
      : thread_([this, &words, &targets, seed] {
          std::mt19937_64 random(seed);
          while (!stop_.load(std::memory_order_relaxed)) {
            for (const std::size_t target : targets) {
              std::atomic_ref(words[target]).store(random(), std::memory_order_relaxed);
            }
          }
        }) {}
  ~Rewriter() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class Race {
 public:
  Race(Namespace& ns, const RaceOptions& options)
      : ns_(ns),
        depth_(std::min<std::uint64_t>({options.depth, ns.queue().pool().slot_count(), ns.block_count()})),
        writes_(options.writes),
        seed_(options.seed),
        words_per_buffer_((ns.format().data_stride() + 7) / sizeof(std::uint64_t)),
        words_(depth_ * words_per_buffer_) {
    // A few words of the data of each block; never its metadata, which with the extended layout lies in
    // the same buffer and belongs to the driver.
    const std::size_t data_words = ns.format().data_size() / sizeof(std::uint64_t);
    for (std::size_t buffer = 0; buffer < depth_; ++buffer) {
      for (std::size_t word = buffer % 7; word < data_words; word += data_words / 8) {
        targets_.push_back(buffer * words_per_buffer_ + word);
      }
    }
  }

  std::uint64_t depth() const { return depth_; }

  Result<Tally> run(TransferMode mode) {
    Tally tally;
    Result<std::uint32_t> reaped = 0;
    {
      const Rewriter rewriter(words_, targets_, seed_);
      std::vector<bool> busy(depth_, false);
      std::uint64_t started = 0;
      while (tally.writes < writes_ && !interrupted()) {
        for (std::uint64_t i = 0; i < depth_ && started < writes_; ++i) {
          if (busy[i]) continue;
          const auto submitted = ns_.queue().submit(write_of(i, mode));
          if (!submitted) return fail(submitted.error());
          busy[i] = true;
          ++started;
        }
        std::this_thread::yield();  // on a machine of one core the rewriter needs a turn
        reaped = ns_.queue().reap(
            [&](const IoDone& done) {
              busy[done.cookie] = false;
              ++tally.writes;
              if (done.outcome) return;
              const bool guard = done.outcome.error().status.code() == status::guard_check_error.code();
              ++(guard ? tally.guard_errors : tally.other_errors);
            },
            std::chrono::seconds(60));
        if (!reaped) return fail(reaped.error());
        if (*reaped == 0) return fail({.code = Errc::timed_out});
      }
    }
    return check_medium(tally);
  }

 private:
  Io write_of(std::uint64_t buffer, TransferMode mode) {
    auto* const memory = reinterpret_cast<std::byte*>(&words_[buffer * words_per_buffer_]);
    const std::size_t size =
        mode == TransferMode::zero_copy ? ns_.format().data_stride() : ns_.format().data_size();
    return {.opcode = Opcode::write,
            .slba = buffer,
            .block_count = 1,
            .memory = {UserMemory(memory, size), {}},
            .mode = mode,
            .cookie = buffer};
  }

  // Reads back what is on the medium, with the rewriter gone.
  Result<Tally> check_medium(Tally tally) {
    std::vector<std::byte> target(depth_ * ns_.format().data_size());
    const auto read = ns_.transfer({.opcode = Opcode::read,
                                    .slba = 0,
                                    .block_count = depth_,
                                    .memory = {UserMemory(target), {}},
                                    .device_checks = PiChecks::none()});
    if (!read && read.error().code != Errc::pi_mismatch) return fail(read.error());
    if (!read) tally.damaged = read.error().mismatch_count;
    return tally;
  }

  Namespace& ns_;
  std::uint64_t depth_;
  std::uint64_t writes_;
  std::uint64_t seed_;
  std::size_t words_per_buffer_;
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> targets_;
};

nlohmann::json json_of(const Tally& tally) {
  return {{"writes", tally.writes},
          {"guard_errors", tally.guard_errors},
          {"other_errors", tally.other_errors},
          {"damaged_blocks_on_medium", tally.damaged}};
}

void print_line(const char* mode, const Tally& tally) {
  fmt::print("  {:<10} {:>10} {:>28} {:>14} {:>18}\n", mode, tally.writes, tally.guard_errors,
             tally.other_errors, tally.damaged);
}

ExitStatus run(const RaceOptions& options) {
  const CommonOptions& common = options.common;
  if (!common.device.starts_with("emu:") && !options.force) {
    return report_usage(common, fmt::format("race overwrites the first {} blocks of {}; use --force if that "
                                            "is meant", options.depth, common.device));
  }
  const auto opened = Namespace::open(
      common.device, {.queue = {.depth = static_cast<std::uint32_t>(options.depth)}});
  if (!opened) return report(common, opened.error());
  Namespace& ns = **opened;
  report_fallbacks(common, ns.fallbacks());
  if (!ns.format().has_pi()) {
    return report_usage(common, "the namespace has no protection information: nobody would see the race");
  }
  Race race(ns, options);
  const auto zero_copy = race.run(TransferMode::zero_copy);
  if (!zero_copy) return report(common, zero_copy.error());
  const auto bounce = race.run(TransferMode::bounce);
  if (!bounce) return report(common, bounce.error());

  if (common.output == OutputFormat::json) {
    const nlohmann::json json{{"depth", race.depth()},
                              {"seed", options.seed},
                              {"zero_copy", json_of(*zero_copy)},
                              {"bounce", json_of(*bounce)}};
    print_json(json);
  } else {
    fmt::print("writes while another thread rewrites their buffers (depth {}, seed {})\n", race.depth(),
               options.seed);
    fmt::print("  {:<10} {:>10} {:>28} {:>14} {:>18}\n", "mode", "writes", "guard errors from the device",
               "other errors", "damaged on medium");
    print_line("zero-copy", *zero_copy);
    print_line("bounce", *bounce);
  }
  if (interrupted()) return report_system(common, "race stopped early", EINTR);
  if (bounce->guard_errors + bounce->damaged > 0) return ExitStatus::guard;
  return bounce->other_errors + zero_copy->other_errors > 0 ? ExitStatus::nvme_status : ExitStatus::ok;
}

}  // namespace

void add_race(CommandLine& line) {
  const auto race = std::make_shared<RaceOptions>();
  Command command = line.command("race", "Tests", "rewrite buffers of writes in flight (destroys data)");
  command.device(race->common)
      .number<std::uint64_t>("--writes", race->writes, "writes in each mode (3000)", 1ull << 32, 1)
      .number<std::uint64_t>("--depth", race->depth, "writes in flight (16)", 1024, 1)
      .number<std::uint64_t>("--seed", race->seed, "of the rewriting thread (0)")
      .flag("--force", race->force, "overwrite the first blocks of a real device");
  command.runs<RaceOptions>(race, run);
}

}  // namespace nvpi::cli
