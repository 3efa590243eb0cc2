// How fast the guard kernels copy and guard, against memcpy and ISA-L, on the CPU at hand.
//
// Absolute times depend on what else the machine does, so every contender of a case is timed in
// turn within each round and compared with the others of the same round. Shown is the median over
// the rounds, best of three runs. Usage: guard_bench [rounds]
#include <gnu/libc-version.h>
#include <isa-l.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "pi/guard_kernels.h"

namespace nvpi {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t user_size = 512 * kib * kib;  // larger than any cache
constexpr std::size_t slot_size = 80 * kib;         // 64 KiB of data with its metadata
constexpr std::size_t slot_count = 8;               // the pool stays in the cache

struct Format {
  GuardType guard;
  std::size_t data_size;
  std::size_t metadata_size;
};

// Transfers `size` bytes of data between user memory and a slot.
using Transfer = std::function<void(std::byte* user, std::byte* slot, std::size_t size)>;

struct Contender {
  std::string name;
  Transfer transfer;
  bool is_kernel = false;  // the bar is for these
};

enum class Order { hot, sequential, random };

struct Case {
  std::string title;
  Order order;
  std::size_t io_size;
  double bar;                         // on the time of each kernel ...
  std::string reference;              // ... divided by that of this contender
  std::vector<Contender> contenders;  // memcpy is the first
};

std::byte* allocate(std::size_t size) {
  void* const p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(p);
}

unsigned char* isal_pointer(std::byte* p) {
  return reinterpret_cast<unsigned char*>(p);
}

// The order in which the I/Os of a case go through user memory; as long as there is memory.
std::vector<std::size_t> offsets_of(const Case& c) {
  std::vector<std::size_t> offsets(c.order == Order::hot ? 1 : user_size / c.io_size);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * c.io_size;
  if (c.order == Order::random) std::shuffle(offsets.begin(), offsets.end(), std::mt19937_64(1));
  return offsets;
}

struct Memory {
  std::byte* user = allocate(user_size);
  std::byte* slots = allocate(slot_size * slot_count);
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Nanoseconds per I/O: [contender][round].
std::vector<std::vector<double>> measure(const Case& c, const Memory& memory, std::size_t rounds) {
  using Clock = std::chrono::steady_clock;
  const auto offsets = offsets_of(c);
  const std::size_t batch =
      c.order == Order::hot ? 256 : std::max<std::size_t>(8, 256 * kib / c.io_size);
  std::size_t next = 0;
  std::vector<std::vector<double>> times(c.contenders.size());
  for (std::size_t round = 0; round < rounds + 1; ++round) {  // the first warms up
    for (std::size_t k = 0; k < c.contenders.size(); ++k) {
      const auto begin = Clock::now();
      for (std::size_t i = 0; i < batch; ++i, ++next) {
        const std::size_t slot = c.order == Order::hot ? 0 : i % slot_count;
        c.contenders[k].transfer(memory.user + offsets[next % offsets.size()],
                                 memory.slots + slot * slot_size, c.io_size);
        asm volatile("" ::: "memory");
      }
      const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
      if (round > 0) times[k].push_back(elapsed.count() / static_cast<double>(batch));
    }
  }
  return times;
}

double median_ratio(const std::vector<double>& times, const std::vector<double>& reference) {
  std::vector<double> ratios(times.size());
  std::transform(times.begin(), times.end(), reference.begin(), ratios.begin(), std::divides<>());
  return median(ratios);
}

void run(const Case& c, const Memory& memory, std::size_t rounds) {
  struct Result {
    double ns = 1e9, to_memcpy = 1e9, to_reference = 1e9;
  };
  std::vector<Result> results(c.contenders.size());
  const auto reference = static_cast<std::size_t>(
      std::find_if(c.contenders.begin(), c.contenders.end(),
                   [&](const Contender& x) { return x.name == c.reference; }) -
      c.contenders.begin());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto times = measure(c, memory, rounds);
    for (std::size_t k = 0; k < results.size(); ++k) {
      Result& r = results[k];
      r.ns = std::min(r.ns, median(times[k]));
      r.to_memcpy = std::min(r.to_memcpy, median_ratio(times[k], times[0]));
      r.to_reference = std::min(r.to_reference, median_ratio(times[k], times[reference]));
    }
  }
  std::printf("\n%s; bar: %.2f of %s\n", c.title.c_str(), c.bar, c.reference.c_str());
  std::printf("  %-24s %10s %9s %7s\n", "", "ns", "x memcpy", "x ref");
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Result& r = results[k];
    const char* const verdict = r.to_reference <= c.bar ? "met" : "missed";
    std::printf("  %-24s %10.1f %9.2f %7.2f %s\n", c.contenders[k].name.c_str(), r.ns, r.to_memcpy,
                r.to_reference, c.contenders[k].is_kernel ? verdict : "");
  }
}

// As protect() does it: block by block, the guard behind its data, prefetching to the end of the
// I/O.
Transfer write_with(const GuardKernel& kernel, Format format) {
  const auto copy_and_guard =
      kernel.functions[static_cast<std::size_t>(format.guard)].copy_and_guard;
  return [=](std::byte* user, std::byte* slot, std::size_t size) {
    const std::byte* const end = user + size;
    for (; user < end; user += format.data_size, slot += format.data_size + format.metadata_size) {
      const std::uint64_t guard = copy_and_guard(slot, user, format.data_size, 0, end);
      std::memcpy(slot + format.data_size, &guard, sizeof guard);
    }
  };
}

// As verify_and_copy() does it.
Transfer read_with(const GuardKernel& kernel, Format format) {
  const auto copy_and_guard =
      kernel.functions[static_cast<std::size_t>(format.guard)].copy_and_guard;
  return [=](std::byte* user, std::byte* slot, std::size_t size) {
    const std::byte* const end = user + size;
    std::uint64_t sum = 0;
    for (; user < end; user += format.data_size, slot += format.data_size + format.metadata_size) {
      sum ^= copy_and_guard(user, slot, format.data_size, 0, nullptr);
    }
    asm volatile("" : : "r"(sum));
  };
}

Transfer memcpy_then(const GuardKernel& kernel, Format format) {
  const auto guard_of = kernel.functions[static_cast<std::size_t>(format.guard)].guard;
  return [=](std::byte* user, std::byte* slot, std::size_t size) {
    const std::byte* const end = user + size;
    for (; user < end; user += format.data_size, slot += format.data_size + format.metadata_size) {
      std::memcpy(slot, user, format.data_size);
      const std::uint64_t guard = guard_of(slot, format.data_size, 0);
      std::memcpy(slot + format.data_size, &guard, sizeof guard);
    }
  };
}

Transfer crc16_t10dif_copy_of(Format format) {
  return [=](std::byte* user, std::byte* slot, std::size_t size) {
    const std::byte* const end = user + size;
    for (; user < end; user += format.data_size, slot += format.data_size + format.metadata_size) {
      const std::uint64_t guard =
          crc16_t10dif_copy(0, isal_pointer(slot), isal_pointer(user), format.data_size);
      std::memcpy(slot + format.data_size, &guard, sizeof guard);
    }
  };
}

const GuardKernel& kernel_named(std::string_view name) {
  for (const GuardKernel* kernel : guard_kernels()) {
    if (kernel->name == name) return *kernel;
  }
  return guard_portable;
}

template <typename MakeTransfer>
void add_kernels(std::vector<Contender>& contenders, GuardType type, MakeTransfer make) {
  for (const GuardKernel* kernel : guard_kernels()) {
    if (kernel == &guard_portable || !kernel->supported()) continue;
    if (kernel->functions[static_cast<std::size_t>(type)].guard == nullptr) continue;
    contenders.push_back({kernel->name, make(*kernel), true});
  }
}

const Contender plain_write = {"memcpy", [](std::byte* user, std::byte* slot, std::size_t size) {
                                 std::memcpy(slot, user, size);
                               }};
const Contender plain_read = {"memcpy", [](std::byte* user, std::byte* slot, std::size_t size) {
                                std::memcpy(user, slot, size);
                              }};

Case hot_case(std::string title, Format format, double bar) {
  Case c{std::move(title), Order::hot, 4 * kib, bar, "", {plain_write}};
  if (format.guard == GuardType::guard_16b) {
    c.contenders.push_back({"crc16_t10dif_copy", crc16_t10dif_copy_of(format)});
    c.reference = "crc16_t10dif_copy";
  } else {  // ISA-L has no CRC-64/NVME before 2.31
    const bool known =
        guard_isal.functions[static_cast<std::size_t>(format.guard)].guard != nullptr;
    const GuardKernel& other = kernel_named(known ? "isal" : "pclmul");
    c.reference = std::string("memcpy, then ") + other.name;
    c.contenders.push_back({c.reference, memcpy_then(other, format)});
  }
  add_kernels(c.contenders, format.guard, [&](auto& kernel) { return write_with(kernel, format); });
  return c;
}

std::vector<Case> cold_cases() {
  std::vector<Case> cases;
  for (const std::size_t io_size : {4 * kib, 64 * kib}) {
    for (const Order order : {Order::random, Order::sequential}) {
      for (const Format format :
           {Format{GuardType::guard_16b, 4096, 8}, Format{GuardType::guard_64b, 4096, 16}}) {
        const std::string what =
            std::string(order == Order::random ? ", random, " : ", sequential, ") +
            std::to_string(8 * guard_size(format.guard)) + "b, " + std::to_string(io_size / kib) +
            " KiB";
        Case write{"cold source" + what, order, io_size, io_size == 4 * kib ? 1.30 : 1.15, "memcpy",
                   {plain_write}};
        add_kernels(write.contenders, format.guard,
                    [&](auto& kernel) { return write_with(kernel, format); });
        cases.push_back(std::move(write));
        Case read{"cold target" + what, order, io_size, 1.10, "memcpy", {plain_read}};
        add_kernels(read.contenders, format.guard,
                    [&](auto& kernel) { return read_with(kernel, format); });
        cases.push_back(std::move(read));
      }
    }
  }
  return cases;
}

std::string cpu_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

void pin_to_one_cpu() {
  const int cpu = sched_getcpu();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace
}  // namespace nvpi

int main(int argc, char** argv) {
  using namespace nvpi;
  const std::size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 101;
  pin_to_one_cpu();
  std::printf("%s; glibc %s; ISA-L %d.%d.%d; %zu rounds\n", cpu_name().c_str(),
              gnu_get_libc_version(), ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION,
              rounds);
  const Memory memory;
  run(hot_case("hot, 4096+8, 16b", {GuardType::guard_16b, 4096, 8}, 0.60), memory, rounds);
  run(hot_case("hot, 4096+16, 32b", {GuardType::guard_32b, 4096, 16}, 0.75), memory, rounds);
  run(hot_case("hot, 4096+16, 64b", {GuardType::guard_64b, 4096, 16}, 0.50), memory, rounds);
  run(hot_case("hot, 8 x 512+8, 16b", {GuardType::guard_16b, 512, 8}, 0.55), memory, rounds);
  for (const Case& c : cold_cases()) run(c, memory, rounds);
}
