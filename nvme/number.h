// Numbers as users write them: decimal, 0x hexadecimal, octal with a leading 0, and binary multiples
// Ki, Mi, Gi, Ti, Pi in any case, the "i" optional. Nothing before, between or behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nvpi {

// Nothing if the text is no such number or does not fit in 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

}  // namespace nvpi
