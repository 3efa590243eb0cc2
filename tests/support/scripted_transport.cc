#include "support/scripted_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace nvpi::test {
namespace {

Bytes bytes_at(const std::byte* memory, std::size_t size) {
  return memory == nullptr ? Bytes{} : Bytes(memory, memory + size);
}

}  // namespace

bool ScriptedTransport::Sent::same_as(const Sent& other) const {
  const Command &a = command, &b = other.command;
  const auto dwords = [](const Command& c) {
    return std::vector<std::uint32_t>{c.nsid,  c.cdw2,  c.cdw3,  c.cdw10,    c.cdw11,       c.cdw12,
                                      c.cdw13, c.cdw14, c.cdw15, c.data_len, c.metadata_len};
  };
  return a.opcode == b.opcode && dwords(a) == dwords(b) && a.data == b.data &&
         a.metadata == b.metadata && data == other.data && metadata == other.metadata &&
         user_data == other.user_data;
}

ScriptedTransport::ScriptedTransport(const PiFormat& format, std::uint64_t block_count) {
  const IdentifyNamespacePages pages = encode_namespace(format, block_count);
  namespace_page = pages.base;
  extension = pages.extension;
  controller = encode_controller(0);
}

Result<IdentifyPage> ScriptedTransport::identify(Cns cns) {
  switch (cns) {
    case Cns::identify_namespace:
      return namespace_page;
    case Cns::identify_controller:
      return controller;
    case Cns::identify_namespace_csi:
      if (extension_error) return fail(*extension_error);
      return extension;
  }
  return fail({.code = Errc::os, .os_errno = EINVAL});
}

bool ScriptedTransport::register_buffers(std::span<const iovec> buffers) {
  buffers_.assign(buffers.begin(), buffers.end());
  return takes_buffers;
}

Result<void> ScriptedTransport::submit(const Command& command, std::uint64_t user_data) {
  if (submits_++ == submit_fails_at) return fail({.code = Errc::os, .os_errno = EAGAIN});
  Sent sent{.command = command, .user_data = user_data};
  if (command.opcode == Opcode::write) {
    sent.data = bytes_at(command.data, command.data_len);
    sent.metadata = bytes_at(command.metadata, command.metadata_len);
  }
  const auto result = answer ? answer(sent, sent_.size()) : 0;
  if (!result) {
    held_.push_back(sent);
  } else {
    if (*result == 0 && command.opcode == Opcode::read && on_read) on_read(command);
    ready_.push_back({.user_data = user_data, .result = *result});
  }
  sent_.push_back(std::move(sent));
  return {};
}

void ScriptedTransport::release_held() {
  for (const Sent& sent : held_) ready_.push_back({.user_data = sent.user_data, .result = 0});
  held_.clear();
}

Result<std::uint32_t> ScriptedTransport::reap(std::span<Completion> completions,
                                              std::chrono::milliseconds timeout) {
  if (reap_error != 0) return fail({.code = Errc::os, .os_errno = reap_error});
  if (ready_.empty()) std::this_thread::sleep_for(timeout);
  if (reversed) std::reverse(ready_.begin(), ready_.end());
  const std::size_t count = std::min(completions.size(), ready_.size());
  std::copy_n(ready_.begin(), count, completions.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint32_t>(count);
}

Geometry geometry_of(const PiFormat& format, std::uint64_t block_count) {
  return {.format = format, .nsid = 7, .block_count = block_count};
}

}  // namespace nvpi::test
