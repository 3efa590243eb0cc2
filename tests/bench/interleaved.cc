#include "interleaved.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>

namespace nvpi::bench {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t user_size = 512 * kib * kib;  // larger than any cache
constexpr std::size_t slot_count = 8;               // the pool stays in the cache

std::byte* allocate(std::size_t size) {
  void* const p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<std::byte*>(p);
}

struct Memory {
  std::byte* user = allocate(user_size);
  std::byte* slots = allocate(slot_size * slot_count);
};

const Memory& memory() {
  static const Memory memory;
  return memory;
}

// Where the I/Os of a case lie in user memory, in the order in which they are sent. Over and over:
// by the time that one comes again, the cache has long forgotten it.
class Walk {
 public:
  explicit Walk(const Case& c) : offsets_(c.order == Order::hot ? 1 : user_size / c.io_size) {
    for (std::size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = i * c.io_size;
    static std::mt19937_64 random(1);
    if (c.order == Order::random) std::shuffle(offsets_.begin(), offsets_.end(), random);
    // Elsewhere than where the walk before this one has just been.
    next_ = random() % offsets_.size();
  }
  std::size_t next() { return offsets_[next_ < offsets_.size() ? next_++ : (next_ = 0)]; }

 private:
  std::vector<std::size_t> offsets_;
  std::size_t next_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Best over the runs of the median over the rounds of each.
double best_median(const std::vector<double>& values) {
  const auto rounds = static_cast<std::ptrdiff_t>(values.size() / runs);
  double best = 1e300;
  for (auto run = values.begin(); values.end() - run >= rounds && rounds > 0; run += rounds) {
    best = std::min(best, median({run, run + rounds}));
  }
  return best;
}

double best_ratio(const std::vector<double>& times, const std::vector<double>& others) {
  std::vector<double> ratios(times.size());
  std::transform(times.begin(), times.end(), others.begin(), ratios.begin(), std::divides<>());
  return best_median(ratios);
}

// Nanoseconds per I/O.
double time_batch(const Case& c, const Contender& contender, Walk& walk) {
  using Clock = std::chrono::steady_clock;
  const bool hot = c.order == Order::hot;
  const std::size_t batch = hot ? 256 : std::max<std::size_t>(8, 256 * kib / c.io_size);
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < batch; ++i) {
    const std::size_t slot = hot ? 0 : i % slot_count;
    contender.transfer(memory().user + walk.next(), memory().slots + slot * slot_size, c.io_size);
    asm volatile("" ::: "memory");
  }
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
  return elapsed.count() / static_cast<double>(batch);
}

}  // namespace

void measure(benchmark::State& state, const Case& c, const Contender& contender) {
  for (std::size_t i = 0; i < slot_count; ++i) {
    fill_slot(contender.format, memory().slots + i * slot_size, c.io_size);
  }
  Walk walk(c);
  const std::array turns = {&contender, &c.memcpy, &c.reference};
  for (const Contender* turn : turns) time_batch(c, *turn, walk);  // warms up
  std::array<std::vector<double>, turns.size()> times;
  for ([[maybe_unused]] const auto round : state) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      times[i].push_back(time_batch(c, *turns[i], walk));
    }
    state.SetIterationTime(times[0].back() * 1e-9);
  }

  const double to_reference = best_ratio(times[0], times[2]);
  state.counters["ns"] = best_median(times[0]);
  state.counters["x_memcpy"] = best_ratio(times[0], times[1]);
  state.counters["x_reference"] = to_reference;
  if (!contender.judged || c.bar == 0) return;
  state.counters["bar"] = c.bar;
  state.SetLabel(std::string(to_reference <= c.bar ? "met" : "missed") + ", of " +
                 c.reference.name);
}

}  // namespace nvpi::bench
