// Small helpers for bytes and reproducible randomness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nvpi::test {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// From NVPI_TEST_SEED, else new in every run. Printed once, so that a failure can be repeated.
std::uint64_t test_seed();

std::uint64_t below(Random& random, std::uint64_t limit);  // 0 to limit - 1
bool coin(Random& random);
Bytes random_bytes(Random& random, std::size_t size);

Bytes from_hex(std::string_view text);
std::string hex(std::span<const std::byte> bytes);
Bytes copy_of(std::span<const std::byte> bytes);
bool all_equal(std::span<const std::byte> bytes, std::uint8_t value);

}  // namespace nvpi::test
