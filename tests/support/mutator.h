// A thread that rewrites memory all the time, as an application may do to its buffer during an I/O.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

namespace nvpi::test {

// With a stride it only writes to the first `data_size` bytes of every `stride`: what lies behind the data of
// a block in an interleaved buffer is the driver's to write.
class Mutator {
 public:
  explicit Mutator(std::span<std::byte> memory, std::size_t stride = 1, std::size_t data_size = 1)
      : stride_(stride), data_size_(data_size), thread_([this, memory](std::stop_token stop) { run(stop, memory); }) {
    while (rounds_.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  }

 private:
  void run(const std::stop_token& stop, std::span<std::byte> memory) {
    std::uint64_t state = 88172645463325252ull;
    while (!stop.stop_requested()) {
      for (int i = 0; i < 64; ++i) {
        state ^= state << 13;  // xorshift
        state ^= state >> 7;
        state ^= state << 17;
        const std::size_t offset = state % memory.size();
        if (offset % stride_ >= data_size_) continue;
        std::atomic_ref<std::byte> byte(memory[offset]);
        byte.store(static_cast<std::byte>(state >> 40), std::memory_order_relaxed);
      }
      rounds_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::size_t stride_, data_size_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::jthread thread_;
};

}  // namespace nvpi::test
