// How fast blocks are copied and guarded, by kernel and through the public functions, against
// memcpy and ISA-L. What the columns mean: README.md.
//
// NVPI_BENCH_ROUNDS sets the number of rounds of a run (101); with 3 of them it is quick and means
// little.
#include <benchmark/benchmark.h>
#include <gnu/libc-version.h>
#include <isa-l.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "interleaved.h"
#include "pi/guard.h"

namespace nvpi::bench {
namespace {

constexpr std::size_t kib = 1024;

struct Row {
  PiFormat::Fields fields;
  double hot_bar;
};

PiFormat::Fields fields_of(std::uint32_t data_size, std::uint32_t metadata_size, GuardType guard) {
  return {.data_size = data_size,
          .metadata_size = metadata_size,
          .layout = MetadataLayout::extended,
          .type = metadata_size == 0 ? PiType::none : PiType::type_1,
          .guard = guard,
          .storage_tag_size = guard == GuardType::guard_32b ? 16u : 0u};
}

const Row rows[] = {
    {fields_of(4096, 8, GuardType::guard_16b), 0.60},
    {fields_of(4096, 16, GuardType::guard_32b), 0.75},
    {fields_of(4096, 16, GuardType::guard_64b), 0.50},
    {fields_of(512, 8, GuardType::guard_16b), 0.55},
    {fields_of(4096, 0, GuardType::guard_16b), 0},  // no bars: what is left if nothing is guarded
};

std::string name_of(const PiFormat& format) {
  const std::string sizes =
      std::to_string(format.data_size()) + "+" + std::to_string(format.metadata_size());
  if (!format.has_pi()) return sizes + "/no_pi";
  return sizes + "/" + std::to_string(8 * guard_size(format.guard())) + "b";
}

// Hot: bars relative to ISA-L. Cold: relative to memcpy, the time is that of the memory.
Case make_case(const Row& row, Direction direction, Order order, std::size_t io_size) {
  constexpr const char* orders[] = {"hot", "cold_sequential", "cold_random"};
  const PiFormat format = *PiFormat::create(row.fields);
  const bool write = direction == Direction::write;
  const bool hot = order == Order::hot;
  const double cold_bar = !write ? 1.10 : io_size == 4 * kib ? 1.30 : 1.15;
  Case c{.name = std::string(orders[static_cast<int>(order)]) + (write ? "/write/" : "/read/") +
                 name_of(format) + "/" + std::to_string(io_size / kib) + "KiB",
         .direction = direction,
         .order = order,
         .io_size = io_size,
         .memcpy = plain_memcpy(format, direction),
         .reference = plain_memcpy(format, direction),
         .bar = hot || !format.has_pi() ? row.hot_bar : cold_bar};
  if (hot && format.has_pi()) c.reference = isal_reference(format, direction);
  return c;
}

void add(const Case& c, const Contender& contender, std::int64_t rounds) {
  benchmark::RegisterBenchmark((c.name + "/" + contender.name).c_str(),
                               [=](benchmark::State& state) { measure(state, c, contender); })
      ->Iterations(rounds * static_cast<std::int64_t>(runs))
      ->UseManualTime();
}

void add_all(const Case& c, std::int64_t rounds) {
  const PiFormat& format = c.memcpy.format;
  add(c, c.memcpy, rounds);
  if (format.has_pi()) add(c, isal_reference(format, c.direction), rounds);
  for (const Contender& contender : nvpi_contenders(format, c.direction)) add(c, contender, rounds);
}

void add_cases(std::int64_t rounds) {
  constexpr Direction directions[] = {Direction::write, Direction::read};
  for (const Row& row : rows) {
    for (const Direction direction : directions) {
      add_all(make_case(row, direction, Order::hot, 4 * kib), rounds);
      for (const std::size_t io_size : {4 * kib, 64 * kib}) {
        for (const Order order : {Order::random, Order::sequential}) {
          add_all(make_case(row, direction, order, io_size), rounds);
        }
      }
    }
  }
}

std::string cpu_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string model;
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

void add_context() {
  benchmark::AddCustomContext("cpu", cpu_name());
  benchmark::AddCustomContext("glibc", gnu_get_libc_version());
  benchmark::AddCustomContext("isal", std::to_string(ISAL_MAJOR_VERSION) + "." +
                                          std::to_string(ISAL_MINOR_VERSION) + "." +
                                          std::to_string(ISAL_PATCH_VERSION));
  for (const auto type : {GuardType::guard_16b, GuardType::guard_32b, GuardType::guard_64b}) {
    benchmark::AddCustomContext("guard_" + std::to_string(8 * guard_size(type)) + "b",
                                std::string(guard_implementation(type)));
  }
}

void pin_to_one_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace
}  // namespace nvpi::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const char* const rounds = std::getenv("NVPI_BENCH_ROUNDS");
  nvpi::bench::pin_to_one_cpu();
  nvpi::bench::add_context();
  nvpi::bench::add_cases(rounds == nullptr ? 101 : std::max(1, std::atoi(rounds)));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
