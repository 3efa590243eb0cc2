#include "nvme/number.h"

#include <doctest/doctest.h>

using namespace nvpi;

TEST_SUITE_BEGIN("number");

TEST_CASE("numbers are decimal, hexadecimal or octal, with binary multiples in any case") {
  struct Row {
    const char* text;
    std::uint64_t value;
  };
  const Row rows[] = {
      {"0", 0},
      {"7", 7},
      {"010", 8},
      {"00", 0},
      {"0x10", 16},
      {"0XfF", 255},
      {"4K", 4096},
      {"4k", 4096},
      {"4Ki", 4096},
      {"4KI", 4096},
      {"1M", 1u << 20},
      {"3g", 3ull << 30},
      {"1Ti", 1ull << 40},
      {"2P", 2ull << 50},
      {"0x10K", 16384},
      {"010K", 8192},
      {"18446744073709551615", ~0ull},
      {"0xFFFFFFFFFFFFFFFF", ~0ull},
      {"16383P", 16383ull << 50},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    REQUIRE(parse_number(row.text).has_value());
    CHECK(*parse_number(row.text) == row.value);
  }
}

TEST_CASE("anything before, between or behind a number, and one that does not fit, is refused") {
  for (const char* text : {"",
                           " 1",
                           "1 ",
                           "-1",
                           "+1",
                           "0x",
                           "0xG",
                           "08",
                           "09",
                           "1.5",
                           "1e3",
                           "1B",
                           "1KB",
                           "1KiB",
                           "1i",
                           "1KK",
                           "K",
                           "1E",
                           "0x-1",
                           "0x+1",
                           "--",
                           "1,2",
                           "18446744073709551616",
                           "16384P",
                           "0x10000000000000000",
                           "0b1",
                           "1 K",
                           "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text).has_value());
  }
  CHECK_FALSE(parse_number(std::string_view("1\0", 2)).has_value());
  CHECK_FALSE(parse_number(std::string_view("1K\0", 3)).has_value());
}

TEST_SUITE_END();
