// Operation n fails, n = 1, 2, ... until a scenario passes without meeting its failure: then every
// place where something can fail has failed. An operation is a submit, a reap, or a command's
// completion.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>

#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

struct Failure {
  std::size_t at = 0;       // the operation, counted from 1
  bool for_good = false;    // this one and all after it
  std::int32_t result = 0;  // of a completion that fails
};

// Hands everything on to an emulated namespace, but for the operation that fails. It also changes
// the caller's memory behind the first read that goes there, as a caller may: lazy reads then need
// their second try.
class FailingTransport final : public Transport {
 public:
  FailingTransport(std::unique_ptr<EmulatedNamespace> device, const Failure& failure)
      : device_(std::move(device)), failure_(failure) {}

  // Whether the caller changes its memory behind the next read that goes there.
  bool caller_interferes = false;
  bool has_failed() const { return operations_ >= failure_.at; }
  void set_up_is_over(std::span<const std::byte> callers_memory) {
    counts_ = true;
    callers_memory_ = callers_memory;
  }

  std::uint32_t nsid() const override { return device_->nsid(); }
  Result<IdentifyPage> identify(Cns cns) override { return device_->identify(cns); }
  std::optional<std::uint64_t> transfer_limit() const override { return 0; }
  bool register_buffers(std::span<const iovec> buffers) override {
    return device_->register_buffers(buffers);
  }
  bool read_only() const override { return false; }
  std::uint32_t capacity() const override { return device_->capacity(); }
  Result<void> flush() override { return {}; }

  Result<void> submit(const Command& command, std::uint64_t user_data) override {
    if (fails()) return fail({.code = Errc::os, .os_errno = ENXIO});
    commands_[user_data] = command;
    return device_->submit(command, user_data);
  }
  Result<std::uint32_t> reap(std::span<Completion> completions,
                             std::chrono::milliseconds timeout) override {
    if (fails()) return fail({.code = Errc::os, .os_errno = ENODEV});
    // One by one, so that commands are in flight beside the one that fails.
    const auto count = device_->reap(completions.first(1), timeout);
    if (count && *count == 1) {
      const Command& command = commands_[completions[0].user_data];
      const bool in_place = command.data >= callers_memory_.data() &&
                            command.data < callers_memory_.data() + callers_memory_.size();
      if (command.opcode == Opcode::read && in_place && caller_interferes) {
        caller_interferes = false;
        command.data[5] ^= std::byte{1};
      }
      if (fails()) completions[0].result = failure_.result;
    }
    return count;
  }

 private:
  bool fails() {
    if (!counts_) return false;
    ++operations_;
    return failure_.for_good ? operations_ >= failure_.at : operations_ == failure_.at;
  }

  std::unique_ptr<EmulatedNamespace> device_;
  Failure failure_;
  std::size_t operations_ = 0;
  bool counts_ = false;
  std::span<const std::byte> callers_memory_;
  Command commands_[64];
};

constexpr std::uint64_t slba = 8, blocks = 24;
constexpr std::uint8_t untouched = 0xEE;

const PiFormat::Fields formats[] = {{512, 8, separate, type_1}, {512, 8, extended, type_2}};

struct Run {
  Run(const PiFormat::Fields& fields, const Failure& failure)
      : format(make_format(fields)), content(blocks * 512), memory(blocks * 512) {
    auto device = make_emulated(format, {.block_count = 64, .mdts = 0});
    auto made = std::make_unique<FailingTransport>(std::move(device), failure);
    transport = made.get();
    auto opened = Namespace::open(std::unique_ptr<Transport>(std::move(made)),
                                  {.queue = {.depth = 3, .slot_size = 5 * 520}});
    REQUIRE(opened.has_value());
    ns = std::move(*opened);
    for (std::size_t i = 0; i < content.size(); ++i)
      content[i] = static_cast<std::byte>(i + i / 512 + 1);
    // The blocks are there before, so that each is protected also if the write below fails.
    REQUIRE(transfer(Opcode::write, TransferMode::bounce, content).has_value());
    transport->set_up_is_over(memory.bytes());
  }

  bool reached() const { return transport->has_failed(); }

  // Whether everything went well.
  bool scenario() {
    bool all = step([&] { return transfer(Opcode::write, TransferMode::bounce, content); });
    for (const TransferMode mode :
         {TransferMode::bounce, TransferMode::lazy, TransferMode::zero_copy}) {
      if (mode == TransferMode::zero_copy && format.extended())
        continue;  // another layout of memory
      std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{untouched});
      Bytes none;
      transport->caller_interferes = mode == TransferMode::lazy;
      const bool read = step([&] { return transfer(Opcode::read, mode, none); });
      transport->caller_interferes = false;
      check_delivery(read, mode);
      all &= read;
    }
    all &= step([&] { return transfer(Opcode::compare, TransferMode::bounce, content); });
    all &= step([&] {
      return ns->transfer({.opcode = Opcode::verify, .slba = slba, .block_count = blocks});
    });
    all &= step([&] { return ns->flush(); });
    const BlockRange range{slba, 3};
    all &= step([&] { return ns->deallocate({&range, 1}); });
    return all;
  }

 private:
  Result<VerifyCounts> transfer(Opcode opcode, TransferMode mode, Bytes& source) {
    const UserMemory data = source.empty() ? memory.memory() : memory_of(source);
    return ns->transfer({.opcode = opcode,
                         .slba = slba,
                         .block_count = blocks,
                         .memory = {data, {}},
                         .mode = mode});
  }

  template <typename Step>
  bool step(Step run) {
    const auto result = run();
    const BouncePool& pool = ns->queue().pool();
    CHECK(ns->queue().in_flight() == 0);
    CHECK(pool.free_count() + pool.abandoned_count() == pool.slot_count());
    CHECK((pool.abandoned_count() > 0) == ns->queue().is_broken());
    if (result) return true;
    const Errc code = result.error().code;
    CAPTURE(static_cast<int>(code));
    const bool gone = code == Errc::timed_out || code == Errc::no_slot;
    if (ns->queue().is_broken()) {
      CHECK((gone || code == Errc::os));
    } else {
      CHECK((code == Errc::os || code == Errc::status));
    }
    CHECK(transport->has_failed());
    return false;
  }

  // A block is there as it was written, or not at all. In the caller's memory blocks of a command
  // that failed may stay: zero-copy always, and lazily after the queue gave up, when the device may
  // still be writing there.
  void check_delivery(bool complete, TransferMode mode) {
    CAPTURE(static_cast<int>(mode));
    CAPTURE(complete);
    const bool in_place =
        mode == TransferMode::zero_copy || (mode == TransferMode::lazy && ns->queue().is_broken());
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto block = memory.bytes().subspan(i * 512, 512);
      const bool right = std::memcmp(block.data(), &content[i * 512], 512) == 0;
      const bool absent = all_equal(block, untouched) || all_equal(block, 0);
      CHECK((right || (!complete && (absent || in_place))));
    }
  }

  PiFormat format;
  Bytes content;
  AlignedBytes memory;
  FailingTransport* transport = nullptr;

 public:
  std::unique_ptr<Namespace> ns;
};

}  // namespace

TEST_SUITE_BEGIN("failure loop");

TEST_CASE(
    "whatever fails, once or for good: a typed error, every slot accounted for, no wrong block") {
  for (const PiFormat::Fields& fields : formats) {
    for (const bool for_good : {false, true}) {
      for (const std::int32_t result : {0x281, 0x282, 0x370, -EIO, -EAGAIN, -EINVAL}) {
        CAPTURE(describe(fields));
        CAPTURE(for_good);
        CAPTURE(result);
        std::size_t n = 0;
        bool reached = true;
        while (reached && n < 1000) {
          ++n;
          CAPTURE(n);
          Run run(fields, {.at = n, .for_good = for_good, .result = result});
          const bool passed = run.scenario();
          reached = run.reached();
          if (!reached) CHECK(passed);
        }
        CHECK(n > 50);
        CHECK(n < 1000);
      }
    }
  }
}

TEST_SUITE_END();
