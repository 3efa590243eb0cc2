// A device that records what it is told and answers as a test wants it to: for what a well-behaved
// namespace never does.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "nvme/io.h"
#include "nvme/transport.h"
#include "support/bytes.h"

namespace nvpi::test {

class ScriptedTransport final : public Transport {
 public:
  // A command as it was submitted, with the bytes that a write carried at that moment.
  struct Sent {
    Command command;
    std::uint64_t user_data = 0;
    Bytes data, metadata;

    // The same command from the same memory with the same bytes in it, as a retry must be.
    bool same_as(const Sent& other) const;
  };

  ScriptedTransport(const PiFormat& format, std::uint64_t block_count);

  // The script. `answer` gets the command and how many came before it; nothing: it is not completed
  // until release_held(). Success if left out.
  std::function<std::optional<std::int32_t>(const Sent& sent, std::size_t index)> answer;
  std::function<void(const Command&)> on_read;    // fills the memory of a read that succeeds
  bool reversed = false;                          // completions in reverse order
  bool takes_buffers = true;                      // registers memory
  std::size_t submit_fails_at = ~std::size_t{0};  // this submit, counted from 0, fails
  int reap_error = 0;                             // an errno value: reap fails with it
  IdentifyPage controller, namespace_page, extension;
  std::optional<Error> extension_error;
  std::optional<std::uint64_t> limit = 0;
  std::uint32_t room = 64;

  void release_held();  // completes, with success, what was held back
  const std::vector<Sent>& sent() const { return sent_; }
  std::size_t submits() const { return submits_; }
  const std::vector<iovec>& buffers() const { return buffers_; }

  std::uint32_t nsid() const override { return 7; }
  Result<IdentifyPage> identify(Cns cns) override;
  std::optional<std::uint64_t> transfer_limit() const override { return limit; }
  bool register_buffers(std::span<const iovec> buffers) override;
  bool read_only() const override { return false; }
  std::uint32_t capacity() const override { return room; }
  Result<void> submit(const Command& command, std::uint64_t user_data) override;
  Result<void> flush() override { return {}; }
  Result<std::uint32_t> reap(std::span<Completion> completions,
                             std::chrono::milliseconds timeout) override;

 private:
  std::vector<Sent> sent_;
  std::vector<Completion> ready_;
  std::vector<Sent> held_;
  std::vector<iovec> buffers_;
  std::size_t submits_ = 0;
};

// The geometry of a namespace with this format and no limits, behind a ScriptedTransport.
Geometry geometry_of(const PiFormat& format, std::uint64_t block_count);

}  // namespace nvpi::test
