#include "support/bytes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace nvpi::test {

std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* wanted = std::getenv("NVPI_TEST_SEED");
    const std::uint64_t value =
        wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
    std::printf("NVPI_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

bool coin(Random& random) {
  return (random() & 1) != 0;
}

Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size;) {
    for (std::uint64_t word = random(), k = 0; k < 8 && i < size; ++k, word >>= 8) {
      bytes[i++] = static_cast<std::byte>(word);
    }
  }
  return bytes;
}

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::string pair(text.substr(i, 2));
    bytes.push_back(static_cast<std::byte>(std::strtoul(pair.c_str(), nullptr, 16)));
  }
  return bytes;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(b >> 4)];
    text += "0123456789abcdef"[std::to_integer<unsigned>(b & std::byte{15})];
  }
  return text;
}

Bytes copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

bool all_equal(std::span<const std::byte> bytes, std::uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

}  // namespace nvpi::test
