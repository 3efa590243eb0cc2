// Times of contenders that share one machine with everybody else.
//
// Absolute times depend on what else the machine does. So each round times the contender, memcpy
// and the reference one after the other, and what counts is the ratio of the times of one round:
// the median over the rounds of a run, best of three runs.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

#include "contenders.h"

namespace nvpi::bench {

enum class Order { hot, sequential, random };  // in which I/Os go through user memory

struct Case {
  std::string name;
  Direction direction;
  Order order;
  std::size_t io_size;
  Contender memcpy;
  Contender reference;
  double bar = 0;  // on a judged contender's time, divided by the reference's; 0: none
};

constexpr std::size_t runs = 3;

// One iteration of `state` is one round; it must run a multiple of `runs`.
void measure(benchmark::State& state, const Case& c, const Contender& contender);

}  // namespace nvpi::bench
