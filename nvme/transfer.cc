#include "nvme/transfer.h"

#include <cstring>

namespace nvpi {
namespace {

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

class Bounce final : public TransferStrategy {
 public:
  void prepare(InFlight& entry, const PiFormat& format) const noexcept override {
    const Io& io = entry.io;
    if (io.opcode == Opcode::write) {
      protect(transferred_format(io, format), tags_of(io, format), slot_blocks(entry), user(io, format));
    }
    attach(entry.command, slot_blocks(entry));
  }

  VerifyCounts deliver(InFlight& entry, const PiFormat& format,
                       MismatchSink on_mismatch) const noexcept override {
    const Io& io = entry.io;
    if (io.opcode != Opcode::read) return {};
    return counted(io, verify_and_copy(transferred_format(io, format), expectation_of(io, format),
                                       slot_blocks(entry), user(io, format), on_mismatch));
  }

 private:
  // Metadata that is not transferred is not copied either.
  static UserBlocks user(const Io& io, const PiFormat& format) {
    const bool has_metadata = transferred_format(io, format).metadata_size() > 0;
    return {io.memory.data, has_metadata ? io.memory.metadata : UserMemory{}};
  }
};

class ZeroCopy final : public TransferStrategy {
 public:
  void prepare(InFlight& entry, const PiFormat& format) const noexcept override {
    const Io& io = entry.io;
    const Blocks blocks = in_place(entry);
    const PiFormat transferred = transferred_format(io, format);
    if (io.opcode == Opcode::write) {
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
    if (io.opcode != Opcode::read) return {};
    const PiFormat transferred = transferred_format(io, format);
    const Blocks blocks = in_place(entry);
    const auto erase_block = [&](const PiMismatch& mismatch) {
      std::memset(blocks.data + std::uint64_t{mismatch.block_index} * transferred.data_stride(), 0,
                  transferred.data_stride());
      return on_mismatch(mismatch);
    };
    return counted(io, verify(transferred, expectation_of(io, format), blocks, erase_block));
  }

 private:
  static Blocks in_place(const InFlight& entry) {
    const UserBlocks& memory = entry.io.memory;
    return {memory.data.contiguous(),
            memory.metadata.empty() ? entry.slot.metadata().data() : memory.metadata.contiguous(),
            static_cast<std::uint32_t>(entry.io.block_count)};
  }
};

}  // namespace

const TransferStrategy& strategy_of(TransferMode mode) noexcept {
  static const Bounce bounce;
  static const ZeroCopy zero_copy;
  switch (mode) {
    case TransferMode::bounce: return bounce;
    case TransferMode::zero_copy: return zero_copy;
  }
  return bounce;
}

}  // namespace nvpi
