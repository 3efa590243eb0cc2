#include "nvme/number.h"

#include <cctype>
#include <charconv>

namespace nvpi {
namespace {

int base_of(std::string_view& text) {
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    text.remove_prefix(2);
    return 16;
  }
  return text.size() > 1 && text[0] == '0' ? 8 : 10;
}

// The shift of a suffix; nothing for text that is none.
std::optional<unsigned> shift_of(std::string_view suffix) {
  if (suffix.empty()) return 0;
  constexpr std::string_view letters = "KMGTP";
  const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0])));
  const std::size_t power = letters.find(letter);
  const bool has_i = suffix.size() == 2 && (suffix[1] == 'i' || suffix[1] == 'I');
  if (power == std::string_view::npos || !(suffix.size() == 1 || has_i)) return {};
  return static_cast<unsigned>(10 * (power + 1));
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  const int base = base_of(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end == text.data()) return {};
  const auto shift = shift_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (!shift || (*shift > 0 && value >> (64 - *shift) != 0)) return {};
  return value << *shift;
}

}  // namespace nvpi
