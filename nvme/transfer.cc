#include "nvme/transfer.h"

#include <cstring>

#include "pi/single_load.h"

namespace nvpi {
namespace {

bool fetches(const Io& io) { return traits_of(io.opcode).direction == Direction::to_device; }

Expectation expectation_of(const Io& io, const PiFormat& format) {
  return {.tags = tags_of(io, format), .checks = applicable(io.checks, format), .first_lba = io.slba};
}

// Only the driver's own PI is counted; what the device or the caller answers for is not ours to claim.
VerifyCounts counted(const Io& io, const VerifyCounts& counts) {
  return io.pi == PiOwner::host ? counts : VerifyCounts{};
}

void attach(Command& command, const Blocks& blocks) {
  command.data = blocks.data;
  command.metadata = command.metadata_len > 0 ? blocks.metadata : nullptr;
}

Blocks slot_blocks(const InFlight& entry) {
  return {entry.slot.data().data(), entry.slot.metadata().data(),
          static_cast<std::uint32_t>(entry.io.block_count)};
}

// The caller's memory as the device's; metadata that the caller does not want goes to the slot.
Blocks user_blocks(const InFlight& entry) {
  const UserBlocks& memory = entry.io.memory;
  return {memory.data.contiguous(),
          memory.metadata.empty() ? entry.slot.metadata().data() : memory.metadata.contiguous(),
          static_cast<std::uint32_t>(entry.io.block_count)};
}

class Bounce final : public TransferStrategy {
 public:
  void prepare(InFlight& entry, const PiFormat& format) const noexcept override {
    const Io& io = entry.io;
    if (fetches(io)) {
      protect(*entry.transferred, tags_of(io, format), slot_blocks(entry), user(entry));
    }
    attach(entry.command, slot_blocks(entry));
  }

  VerifyCounts deliver(InFlight& entry, const PiFormat& format,
                       MismatchSink on_mismatch) const noexcept override {
    const Io& io = entry.io;
    if (fetches(io)) return {};
    return counted(io, verify_and_copy(*entry.transferred, expectation_of(io, format), slot_blocks(entry),
                                       user(entry), on_mismatch));
  }

 private:
  // Metadata that is not transferred is not copied either.
  static UserBlocks user(const InFlight& entry) {
    const UserBlocks& memory = entry.io.memory;
    return {memory.data, entry.transferred->metadata_size() > 0 ? memory.metadata : UserMemory{}};
  }
};

class ZeroCopy final : public TransferStrategy {
 public:
  void prepare(InFlight& entry, const PiFormat& format) const noexcept override {
    const Io& io = entry.io;
    const Blocks blocks = user_blocks(entry);
    const PiFormat& transferred = *entry.transferred;
    if (fetches(io)) {
      if (io.memory.metadata.empty() && !transferred.extended()) {
        std::memset(blocks.metadata, 0, io.block_count * transferred.metadata_size());
      }
      if (transferred.has_pi()) generate(transferred, tags_of(io, format), blocks);
    }
    attach(entry.command, blocks);
  }

  VerifyCounts deliver(InFlight& entry, const PiFormat& format,
                       MismatchSink on_mismatch) const noexcept override {
    const Io& io = entry.io;
    if (fetches(io)) return {};
    const PiFormat& transferred = *entry.transferred;
    const Blocks blocks = user_blocks(entry);
    // What failed, and what was not looked at any more, must not stay in the caller's memory.
    const auto erase = [&](std::uint64_t first, std::uint64_t count) {
      const std::uint64_t metadata_stride = io.memory.metadata.empty() ? 0 : transferred.metadata_size();
      std::memset(blocks.data + first * transferred.data_stride(), 0, count * transferred.data_stride());
      std::memset(blocks.metadata + first * metadata_stride, 0, count * metadata_stride);
    };
    const auto erase_bad = [&](const PiMismatch& mismatch, const FailedBlock& block) {
      const bool go_on = on_mismatch(mismatch, block);
      erase(mismatch.block_index, go_on ? 1 : blocks.count - mismatch.block_index);
      return go_on;
    };
    return counted(io, verify(transferred, expectation_of(io, format), blocks, erase_bad));
  }
};

const Bounce bounce;

// Reads into the caller's memory and verifies there, which proves nothing if it fails.
class Lazy final : public TransferStrategy {
 public:
  static bool is_possible(const Io& io, const PiFormat& format) {
    const auto fits = [](const UserMemory& memory) {
      const std::byte* const base = memory.contiguous();
      return memory.empty() || (base != nullptr && reinterpret_cast<std::uintptr_t>(base) % 4 == 0);
    };
    return io.opcode == Opcode::read && !format.extended() && fits(io.memory.data) && fits(io.memory.metadata);
  }

  void prepare(InFlight& entry, const PiFormat&) const noexcept override {
    attach(entry.command, user_blocks(entry));
  }
  VerifyCounts deliver(InFlight& entry, const PiFormat& format, MismatchSink) const noexcept override {
    const Io& io = entry.io;
    const auto stop = [](const PiMismatch&) { return false; };
    const Blocks blocks = user_blocks(entry);
    const VerifyCounts counts = verify(*entry.transferred, expectation_of(io, format), blocks, stop);
    if (counts.mismatched > 0) discard(entry);  // whatever becomes of the second try
    return counted(io, counts);
  }
  void discard(InFlight& entry) const noexcept override {
    const Blocks blocks = user_blocks(entry);
    std::memset(blocks.data, 0, entry.io.memory.data.size());
    std::memset(blocks.metadata, 0, entry.io.memory.metadata.size());
  }
  const TransferStrategy* second_try() const noexcept override { return &bounce; }
};

const ZeroCopy zero_copy;
const Lazy lazy;

class NoTransfer final : public TransferStrategy {
 public:
  void prepare(InFlight&, const PiFormat&) const noexcept override {}
  VerifyCounts deliver(InFlight&, const PiFormat&, MismatchSink) const noexcept override { return {}; }
};

// The bytes of a command as they are, in whichever direction its opcode says.
class Passthrough final : public TransferStrategy {
 public:
  void prepare(InFlight& entry, const PiFormat&) const noexcept override {
    const UserBlocks& memory = entry.io.memory;
    if (traits_of(entry.command.opcode).direction != Direction::from_device) {
      copy_in(entry.slot.data().data(), memory.data);
      copy_in(entry.slot.metadata().data(), memory.metadata);
    }
    entry.command.data = memory.data.empty() ? nullptr : entry.slot.data().data();
    entry.command.metadata = memory.metadata.empty() ? nullptr : entry.slot.metadata().data();
  }

  VerifyCounts deliver(InFlight& entry, const PiFormat&, MismatchSink) const noexcept override {
    if (traits_of(entry.command.opcode).direction == Direction::from_device) {
      copy_out(entry.io.memory.data, entry.slot.data().data());
      copy_out(entry.io.memory.metadata, entry.slot.metadata().data());
    }
    return {};
  }

 private:
  static void copy_in(std::byte* target, const UserMemory& source) {
    UserMemory::Cursor cursor(source);
    for (auto run = cursor.next(source.size()); !run.empty(); run = cursor.next(source.size())) {
      copy_once(target, run.data(), run.size());
      target += run.size();
    }
  }
  static void copy_out(const UserMemory& target, const std::byte* source) {
    UserMemory::Cursor cursor(target);
    for (auto run = cursor.next(target.size()); !run.empty(); run = cursor.next(target.size())) {
      copy_once(run.data(), source, run.size());
      source += run.size();
    }
  }
};

const NoTransfer no_transfer;
const Passthrough passthrough;

}  // namespace

const TransferStrategy& strategy_of(const Io& io, const PiFormat& format) noexcept {
  if (!transfers_blocks(traits_of(io.opcode))) return no_transfer;
  switch (io.mode) {
    case TransferMode::bounce: return bounce;
    case TransferMode::zero_copy: return zero_copy;
    case TransferMode::lazy: break;
  }
  if (Lazy::is_possible(io, format)) return lazy;
  return bounce;
}

const TransferStrategy& passthrough_strategy() noexcept { return passthrough; }

}  // namespace nvpi
