// When the completions of an emulated namespace come.
//
// The emulation carries a command out as soon as it gets to it; the completion then waits here until its time
// has come. So what the emulation costs runs inside the time that the device is said to take.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "nvme/command.h"

namespace nvpi {

// How long a device takes. A command starts to transfer after its latency; transfers of one direction share a
// channel, one after the other. Zero: no time at all.
struct ServiceTime {
  std::uint32_t read_us = 0, write_us = 0;    // latency
  std::uint64_t read_mbs = 0, write_mbs = 0;  // bandwidth, 10^6 bytes a second
};

using EmulatedClock = std::chrono::steady_clock;

// The channels of a device. All queues share them.
class ServiceChannels {
 public:
  explicit ServiceChannels(const ServiceTime& service);

  // Or no command takes any time.
  bool is_timed() const { return is_timed_; }
  // When a command that came at `arrival` is done. Takes the time of its channel: once for each command.
  EmulatedClock::time_point done_at(const Command& command, EmulatedClock::time_point arrival);

 private:
  struct Channel {
    std::chrono::nanoseconds latency{0};
    std::uint64_t mbs = 0;
    EmulatedClock::time_point free_at{};
  };
  bool is_timed_;
  Channel read_, write_;
};

// The completions of one queue.
class EmulatedCompletions {
 public:
  using Clock = EmulatedClock;
  using Time = Clock::time_point;

  explicit EmulatedCompletions(std::uint32_t capacity);

  void add(const Completion& completion, Time due);
  // Before the completion at this place of those that wait.
  void add_overtaking(const Completion& completion, std::size_t place);
  void add_lost() { ++lost_; }  // it never comes, and keeps its room

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t in_flight() const { return waiting_.size() + lost_; }
  bool has_due(std::size_t count) const;
  // Waits for the first one. Returns how many it took; 0 after the timeout, or at once if none was added.
  std::uint32_t take(std::span<Completion> target, std::chrono::milliseconds timeout);

 private:
  struct Waiting {
    Completion completion;
    Time due;
  };
  std::vector<Waiting> waiting_;  // by `due`, then in the order in which they were added
  std::size_t lost_ = 0;
};

}  // namespace nvpi
