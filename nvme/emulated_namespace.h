// A namespace of the NVM command set, in process. NVM Command Set Specification 1.0, sections 3.2 and 5.2;
// with zones, Zoned Namespace Command Set Specification 1.1.
//
// It carries out commands as a controller does: it fetches the host's memory once, checks the protection
// information as PRACT, PRCHK, masks and escape tags say, and stores blocks with their metadata on a
// medium. Commands are carried out by reap(), in the order in which they were submitted: between submit()
// and reap() the host's memory may change, as it may before a real device fetches it.
//
// Queues that another() made share the namespace, each in a thread of its own; it carries out one command at a
// time.
//
// Not emulated: SGLs and PRPs. The memory of a command must be as long as the command says. Of zoned
// namespaces there are no Identify structures and no zone management commands: zones() stands for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nvme/emulated_completions.h"
#include "nvme/faults.h"
#include "nvme/medium.h"
#include "nvme/ranges.h"
#include "nvme/transport.h"
#include "nvme/zones.h"

namespace nvpi {

class EmulatedNamespace final : public Transport {
 public:
  struct Options {
    PiFormat::Fields format;
    std::uint64_t block_count = 0;
    std::string file;             // empty: in memory
    std::uint8_t mdts = 7;        // 512 KiB; 0 for no limit
    std::uint32_t capacity = 1024;  // commands in flight
    // How unwritten and deallocated blocks read (NVM Command Set Specification 1.0, figure 97): bits 2:0
    // are 1 for zeros and 2 for ones, bit 3 lets Write Zeroes deallocate, bit 4 makes their guard fit.
    std::uint8_t dlfeat = 0b0'1001;
    bool dulbe = false;  // they do not read at all; DULBE of the Error Recovery feature
    bool write_protected = false;
    // Copy: blocks of a range, blocks of a command, ranges of a command less one.
    std::uint16_t mssrl = 0xFFFF;
    std::uint32_t mcl = 0xFFFF'FFFF;
    std::uint8_t msrc = 0xFF;
    std::uint64_t zone_size = 0;      // blocks; 0: no zones
    std::uint64_t zone_capacity = 0;  // blocks; 0: all of the zone
    ServiceTime service;
    Faults faults;
    // Called when the "device" is about to fetch or fill the host's memory: what a test needs to rewrite
    // a buffer in flight, at exactly that moment.
    std::function<void(const Command&)> on_transfer;
  };

  // Reads the part of a device name behind "emu:": key=value pairs with commas between them. Keys:
  //   file, size (bytes of data), ds, ms, mset, pi, pil, pif, sts, lbstm   an existing file brings its own
  //   mdts, dlfeat, dulbe, mssrl, mcl, msrc, wp (write protected), zone_size, zone_capacity  as above
  //   read_us, write_us, read_mbs, write_mbs                               see ServiceTime
  //   fault, seed                                                          see faults.h
  static Result<Options> parse(std::string_view text);
  static Result<std::unique_ptr<EmulatedNamespace>> create(const Options& options);

  Medium& medium() { return *medium_; }  // for damage from outside
  Zones& zones() { return zones_; }

  std::uint32_t nsid() const override { return 1; }
  Result<IdentifyPage> identify(Cns cns) override;
  std::optional<std::uint64_t> transfer_limit() const override { return 0; }
  bool register_buffers(std::span<const iovec> buffers) override;
  bool read_only() const override { return false; }
  Result<std::unique_ptr<Transport>> another() override;
  std::uint32_t capacity() const override { return options_.capacity; }
  Result<void> submit(const Command& command, std::uint64_t user_data) override;
  Result<void> flush() override { return {}; }
  Result<std::uint32_t> reap(std::span<Completion> completions,
                             std::chrono::milliseconds timeout) override;

 private:
  // What all queues have in common.
  struct Shared {
    Shared(const Options& given, std::unique_ptr<Medium> blocks);
    const Options options;
    const std::unique_ptr<Medium> medium;
    FaultInjector faults;
    Zones zones;
    ServiceChannels channels;
    std::mutex mutex;  // of all above
  };
  explicit EmulatedNamespace(std::shared_ptr<Shared> shared);
  struct Pending {
    Command command;
    std::uint64_t user_data;
    EmulatedClock::time_point arrival;
  };
  struct Outcome {
    Status status;
    std::uint64_t dwords = 0;
  };

  void carry_out(const Pending& pending);

  // emulated_commands.cc
  Outcome execute(const Command& command);
  Status write(const Command& command, const PiControl& pi);
  Status read(const Command& command, const PiControl& pi);
  Status compare(const Command& command, const PiControl& pi);
  Status verify(const Command& command, const PiControl& pi);
  Status write_zeroes(const Command& command, const PiControl& pi);
  Status write_uncorrectable(const Command& command);
  Outcome zone_append(const Command& command, const PiControl& pi);
  Status deallocate(const Command& command);
  Outcome copy(const Command& command);
  Status copy_range(const CopyRange& range, const CopyRequest& request, std::uint64_t copied);

  Status check_copy(const CopyRequest& request) const;
  Status check_range(std::uint64_t slba, std::uint64_t count) const;
  Status check_lengths(const Command& command) const;
  Status check_pi_fields(const Command& command, const PiControl& pi) const;
  Status check_writable(const Command& command) const;

  // emulated_blocks.cc
  void fetch(const Command& command, StagedBlocks& stage);
  void deliver(const Command& command, const StagedBlocks& stage);
  Status load(std::uint64_t slba, std::uint64_t count, StagedBlocks& stage);
  Status store(std::uint64_t slba, StagedBlocks& stage);
  void make_unwritten(StagedBlocks& stage, std::size_t block) const;
  void make_pi(StagedBlocks& stage, const PiTags& tags) const;
  void remap_pi(StagedBlocks& stage, std::uint64_t initial_ref_tag) const;
  Status check_pi(const StagedBlocks& stage, std::uint64_t slba, const PiTags& tags,
                  const PiChecks& checks) const;

  const std::shared_ptr<Shared> shared_;
  const Options& options_;
  Medium* const medium_;
  FaultInjector& faults_;
  Zones& zones_;
  EmulatedCompletions completions_;
  std::vector<Pending> pending_;  // a ring of capacity() entries
  std::uint64_t head_ = 0, tail_ = 0;
  std::vector<iovec> registered_;
  StagedBlocks stage_, media_;  // kept between commands: they only grow
};

}  // namespace nvpi
