// Decoding and encoding a tuple are inverse to each other, in every format.
#include <algorithm>
#include <array>

#include "input.h"
#include "pi/tuple.h"

using namespace nvpi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto format = fuzz::any_format(input);
  if (!format) return 0;
  std::array<std::byte, 16> bytes{}, again{};
  for (std::byte& b : bytes) b = static_cast<std::byte>(input.byte());
  std::fill(bytes.begin() + format->pi_size(), bytes.end(), std::byte{0});
  const PiTuple tuple = decode_tuple(*format, bytes.data());
  fuzz::require(tuple.storage_tag <= format->storage_tag_max());
  fuzz::require(tuple.ref_tag <= format->ref_tag_max());
  encode_tuple(*format, tuple, again.data());
  fuzz::require(bytes == again);
  fuzz::require(!is_escape(*format, tuple) || tuple.app_tag == 0xFFFF);
  return 0;
}
