#include "nvme/emulated_completions.h"

#include <algorithm>
#include <thread>

namespace nvpi {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// A sleeper wakes up late, by 50 us and more. The end of a wait is therefore spent awake.
void wait_until(EmulatedCompletions::Time time) {
  constexpr microseconds lateness{200};
  if (time - EmulatedCompletions::Clock::now() > lateness) std::this_thread::sleep_until(time - lateness);
  while (EmulatedCompletions::Clock::now() < time) continue;
}

}  // namespace

ServiceChannels::ServiceChannels(const ServiceTime& service)
    : is_timed_((service.read_us | service.write_us | service.read_mbs | service.write_mbs) != 0),
      read_{.latency = microseconds(service.read_us), .mbs = service.read_mbs},
      write_{.latency = microseconds(service.write_us), .mbs = service.write_mbs} {}

EmulatedClock::time_point ServiceChannels::done_at(const Command& command,
                                                   EmulatedClock::time_point arrival) {
  if (!is_timed_) return {};
  const bool reads = command.opcode == Opcode::read || command.opcode == Opcode::verify ||
                     command.opcode == Opcode::compare;
  Channel& channel = reads ? read_ : write_;
  const std::uint64_t bytes = std::uint64_t{command.data_len} + command.metadata_len;
  const nanoseconds transfer(channel.mbs == 0 ? 0 : bytes * 1000 / channel.mbs);
  channel.free_at = std::max(arrival + channel.latency, channel.free_at) + transfer;
  return channel.free_at;
}

EmulatedCompletions::EmulatedCompletions(std::uint32_t capacity) { waiting_.reserve(capacity); }

void EmulatedCompletions::add(const Completion& completion, Time due) {
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), due,
                                      [](Time a, const Waiting& b) { return a < b.due; });
  waiting_.insert(place, {completion, due});
}

void EmulatedCompletions::add_overtaking(const Completion& completion, std::size_t place) {
  const auto overtaken = waiting_.begin() + static_cast<std::ptrdiff_t>(place);
  waiting_.insert(overtaken, {completion, overtaken->due});
}

bool EmulatedCompletions::has_due(std::size_t count) const {
  if (count == 0) return true;
  return waiting_.size() >= count && waiting_[count - 1].due <= Clock::now();
}

std::uint32_t EmulatedCompletions::take(std::span<Completion> target, std::chrono::milliseconds timeout) {
  if (in_flight() == 0) return 0;
  const Time limit = Clock::now() + timeout;
  wait_until(waiting_.empty() ? limit : std::min(limit, waiting_.front().due));
  const Time now = Clock::now();
  std::uint32_t count = 0;
  while (count < target.size() && count < waiting_.size() && waiting_[count].due <= now) {
    target[count] = waiting_[count].completion;
    ++count;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return count;
}

}  // namespace nvpi
