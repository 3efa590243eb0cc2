// Reads and writes in flight on one transport, each with its slot of bounce memory.
//
//   write: check -> slot -> protect(slot, user) -> command -> submit -> reap -> status -> slot back
//   read : check -> slot -> command -> submit -> reap -> status -> verify(user, slot) -> slot back
//
// Everything is allocated when the queue is made; nothing is between submit and reap. A slot goes back only
// when its command completes. A queue whose commands do not complete is broken: it gives their slots up
// for good and refuses further work.
//
// Threads: a queue and its transport belong to one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "bounce/bounce_pool.h"
#include "nvme/io.h"
#include "nvme/transfer.h"
#include "nvme/transport.h"

namespace nvpi {

struct QueueOptions {
  std::uint32_t depth = 16;        // I/Os in flight
  std::uint64_t slot_size = 0;     // bytes of data a slot; 0: as much as one command may carry, 1 MiB at most
  bool huge_pages = true;
  bool fixed_buffers = true;
};

struct IoDone {
  std::uint64_t cookie = 0;
  std::uint64_t slba = 0;
  std::uint32_t block_count = 0;
  std::uint64_t dwords = 0;  // CQE DW0 and DW1: where a zone append went, which copy range failed
  // Read by the host: what was verified. Errc::status, os, or pi_mismatch otherwise.
  Result<VerifyCounts> outcome{};
};

class Queue {
 public:
  // The transport must outlive the queue.
  static Result<std::unique_ptr<Queue>> create(Transport& transport, const Geometry& geometry,
                                               const QueueOptions& options);
  // Waits for what is in flight, 5 s at most, and gives up the slots of what still is then.
  ~Queue();

  std::uint64_t max_blocks(PiOwner pi, Opcode opcode = Opcode::read) const;  // of one I/O
  std::uint32_t in_flight() const { return in_flight_; }
  bool has_room() const { return in_flight_ < depth_ && !broken_; }
  // Lazy reads that did not verify in the caller's memory but did when they were read again.
  std::uint64_t benign_mismatches() const { return benign_mismatches_; }
  const Fallbacks& fallbacks() const { return fallbacks_; }
  const BouncePool& pool() const { return *pool_; }

  // Takes an I/O of at most max_blocks(). Errc::no_slot if there is no room. The command is sent by the
  // next flush or reap.
  Result<void> submit(const Io& io);
  // Takes a command as it is, with the bytes that it moves (data_len and metadata_len are set from them),
  // which go through a slot. Its lengths are checked like any other's, unless the caller knows better:
  // then it is the caller that the device may write past the memory of.
  enum class Lengths : std::uint8_t { checked, trusted };
  Result<void> submit(const Command& command, const UserBlocks& memory, std::uint64_t cookie,
                      Lengths lengths = Lengths::checked);
  Result<void> flush() { return transport_.flush(); }

  // Waits for completions and passes each I/O that is done to `on_done(const IoDone&)`. Returns how many
  // commands came back, also those that were sent again: 0 means that the time ran out.
  template <typename F>
  Result<std::uint32_t> reap(F&& on_done, std::chrono::milliseconds timeout) {
    auto count = transport_.reap(completions_, timeout);
    if (!count) return count;
    for (std::uint32_t i = 0; i < *count; ++i) {
      IoDone done;
      if (complete(completions_[i], done)) on_done(static_cast<const IoDone&>(done));
    }
    return count;
  }

  // Stops using the queue with commands still in flight: their slots are never handed out again, and what
  // comes back late is ignored.
  void give_up();
  bool is_broken() const { return broken_; }

 private:
  Queue(Transport& transport, const Geometry& geometry, std::uint32_t depth,
        std::unique_ptr<BouncePool> pool);
  Result<InFlight*> take_entry();
  void prepare(InFlight& entry);
  Result<void> start(InFlight& entry, Lengths lengths);
  bool complete(const Completion& completion, IoDone& done);
  bool read_again(InFlight& entry, std::uint32_t index, Result<VerifyCounts>& outcome);
  bool send_again(InFlight& entry, std::uint32_t index, const Completion& completion);
  Result<VerifyCounts> outcome_of(InFlight& entry, const Completion& completion);

  Transport& transport_;
  Geometry geometry_;
  TransferredFormats formats_;
  std::array<std::uint64_t, 3> max_blocks_{};  // by PiOwner, of opcodes that transfer
  std::uint32_t depth_;
  std::unique_ptr<BouncePool> pool_;
  std::vector<InFlight> entries_;     // by user_data
  std::vector<std::uint32_t> free_entries_;
  std::vector<Completion> completions_;
  std::uint32_t in_flight_ = 0;
  std::uint64_t benign_mismatches_ = 0;
  bool fixed_buffers_ = false;
  bool broken_ = false;
  Fallbacks fallbacks_;
};

}  // namespace nvpi
