// A fuzzer's bytes as numbers, and a format made from them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "pi/format.h"

namespace nvpi::fuzz {

// A check that stops the fuzzer also in an optimised build.
inline void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  template <typename T>
  T number() {  // zero when the input is used up
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T) && !left_.empty(); ++i) {
      value = value << 8 | left_[0];
      left_ = left_.subspan(1);
    }
    return static_cast<T>(value);
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  std::span<const std::uint8_t> rest() const { return left_; }

 private:
  std::span<const std::uint8_t> left_;
};

// Mostly legal: small blocks for the 16b guard, 4096 bytes for the others.
inline std::optional<PiFormat> any_format(Input& input) {
  PiFormat::Fields fields;
  fields.type = static_cast<PiType>(1 + input.byte() % 3);
  fields.guard = static_cast<GuardType>(input.byte() % 3);
  const bool wide = fields.guard != GuardType::guard_16b;
  fields.data_size = wide || input.byte() % 2 != 0 ? 4096 : 512;
  fields.metadata_size = (wide ? 16u : 8u) + input.byte() % 100;
  fields.storage_tag_size = input.byte() % 65;
  fields.storage_tag_mask = input.number<std::uint64_t>();
  fields.position = static_cast<PiPosition>(input.byte() % 2);
  fields.layout = static_cast<MetadataLayout>(input.byte() % 2);
  const auto format = PiFormat::create(fields);
  if (!format) return {};
  return *format;
}

}  // namespace nvpi::fuzz
