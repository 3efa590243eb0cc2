// Things that go wrong in an emulated namespace, drawn from a seed: the same seed and the same commands make
// the same run.
//
// As text: faults with a plus between them, each KIND[/VALUE] and when it strikes: :PROBABILITY of each
// command that it can befall, or @N for the N-th of those, counted from 1. The kinds are those of FaultKind
// with hyphens, and errno for `error`. For example
//   bitflip-data:0.01+status/0x281@3+errno/11:0.05+delay/5:0.1
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nvme/medium.h"

namespace nvpi {

enum class FaultKind : std::uint8_t {
  // Of commands that read blocks, on one of their blocks.
  bitflip_data,      // on the medium, before the command reads it
  bitflip_metadata,  // likewise
  stale_read,        // what the block held before it was written last, if that is not too long ago
  // Of commands that store blocks, on one of their blocks, after PI was checked or made.
  bitflip_data_write,      // on the way to the medium
  bitflip_metadata_write,  // likewise
  misdirected_write,       // stored at another LBA; its own keeps what it had
  lost_write,              // acknowledged and not stored
  torn_write,              // the first part of the new data, the rest of the old, all new metadata
  // Of all commands.
  status,   // not carried out; ends with the status VALUE (SCT and SC, such as 0x281)
  error,    // not carried out; ends with the errno VALUE (11, EAGAIN, is sent again by the driver)
  delay,    // completes VALUE milliseconds later
  reorder,  // completes before commands that were submitted earlier
  drop,     // is carried out and never completes
  remove,   // from here on the device is gone: ENODEV
};

struct Fault {
  FaultKind kind = FaultKind::status;
  std::uint32_t value = 0;
  double probability = 0;
  std::uint64_t nth = 0;  // 0: by probability
};

struct Faults {
  std::uint64_t seed = 0;
  std::vector<Fault> list;

  // Errc::bad_option with the rule that the text breaks.
  static Result<std::vector<Fault>> parse(std::string_view text);
};

// Stands between an emulated namespace and its medium. Without faults it passes everything on.
class FaultInjector {
 public:
  FaultInjector(const Faults& faults, const PiFormat& format);

  // How the next command comes to its end.
  struct Fate {
    std::optional<std::int32_t> result;  // of a command that is not carried out
    std::chrono::milliseconds delay{0};
    std::optional<std::uint64_t> overtakes;  // which of those that wait: modulo their number
    bool dropped = false;
  };
  Fate next_fate();
  bool device_is_gone() const { return device_is_gone_; }

  // As Medium::read and Medium::write. A write may change the blocks that it is given.
  int read(Medium& medium, std::uint64_t lba, StagedBlocks& blocks);
  int write(Medium& medium, std::uint64_t lba, StagedBlocks& blocks);

 private:
  struct Armed {
    Fault fault;
    std::uint64_t chances = 0;
  };
  const Fault* strike(FaultKind kind);
  std::uint64_t random();
  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
  void flip_bit(std::vector<std::byte>& bytes, std::size_t block_size, std::size_t block);
  int flip_on_medium(Medium& medium, std::uint64_t lba);
  int tear(Medium& medium, std::uint64_t lba, StagedBlocks& blocks);
  int keep_previous(Medium& medium, std::uint64_t lba, std::size_t count);
  void make_stale(std::uint64_t lba, StagedBlocks& blocks);

  PiFormat format_;
  std::vector<Armed> armed_;
  std::uint64_t state_;
  bool device_is_gone_ = false;
  StagedBlocks block_;  // scratch
  // What blocks held before they were written last, at LBA modulo its size; empty without stale reads.
  std::vector<StagedBlocks> previous_;
  std::vector<std::uint64_t> previous_lba_;
};

}  // namespace nvpi
