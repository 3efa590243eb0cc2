// Formats for tests: a table of typical ones, and random ones.
#pragma once

#include <string>
#include <vector>

#include "pi/protect.h"
#include "support/bytes.h"

namespace nvpi::test {

// Formats are written as in describe().
using enum MetadataLayout;
using enum PiType;
using enum PiPosition;
using enum GuardType;

// The format of legal fields.
PiFormat make_format(const PiFormat::Fields& fields);

// "4096+8 separate type 1 16b last sts 0"
std::string describe(const PiFormat::Fields& fields);
inline std::string describe(const PiFormat& format) {
  return describe(format.fields());
}

// Every guard, type, layout and position at least once; with and without PI and metadata.
const std::vector<PiFormat::Fields>& typical_formats();

// Any legal format with PI. Small blocks more often than large ones.
PiFormat::Fields random_fields(Random& random);
// Tags that fit the format and are no escape.
PiTags random_tags(Random& random, const PiFormat& format);

}  // namespace nvpi::test
