#include "support/formats.h"

#include <doctest/doctest.h>

namespace nvpi::test {

PiFormat make_format(const PiFormat::Fields& fields) {
  const auto format = PiFormat::create(fields);
  INFO("refused: ", describe(fields));
  REQUIRE(format.has_value());
  return *format;
}

std::string describe(const PiFormat::Fields& fields) {
  constexpr const char* guards[] = {"16b", "32b", "64b"};
  std::string text = std::to_string(fields.data_size) + "+" + std::to_string(fields.metadata_size);
  text += fields.layout == extended ? " extended" : " separate";
  if (fields.type == none) return text + " without PI";
  text += " type " + std::to_string(static_cast<unsigned>(fields.type)) + " ";
  text += guards[static_cast<unsigned>(fields.guard)];
  text += fields.position == first ? " first" : " last";
  return text + " sts " + std::to_string(fields.storage_tag_size);
}

const std::vector<PiFormat::Fields>& typical_formats() {
  static const std::vector<PiFormat::Fields> formats = {
      {512, 8, separate, type_1, last, guard_16b, 0},
      {512, 8, extended, type_1, last, guard_16b, 0},
      {4096, 8, separate, type_1, last, guard_16b, 0},
      {4096, 8, extended, type_2, last, guard_16b, 0},
      {4096, 64, separate, type_1, last, guard_16b, 0},
      {4096, 64, extended, type_1, first, guard_16b, 0},
      {512, 16, extended, type_3, last, guard_16b, 0},
      {512, 16, separate, type_3, first, guard_16b, 0},
      {512, 8, separate, type_1, last, guard_16b, 13},
      {512, 8, extended, type_2, last, guard_16b, 32},
      {4096, 16, separate, type_1, last, guard_64b, 0},
      {4096, 64, extended, type_1, last, guard_64b, 16},
      {4096, 16, separate, type_1, last, guard_32b, 32},
      {4096, 128, extended, type_3, first, guard_32b, 16},
      {4096, 0, separate, none},
      {512, 8, extended, none},
      {4096, 16, separate, none},
  };
  return formats;
}

PiFormat::Fields random_fields(Random& random) {
  PiFormat::Fields fields;
  fields.guard = static_cast<GuardType>(below(random, 4) % 3);  // 16b twice as often
  const bool wide = fields.guard != guard_16b;
  fields.data_size = wide || below(random, 4) == 0 ? 4096 : 512u << below(random, 3);
  const unsigned pi_size = wide ? 16 : 8;
  switch (below(random, 4)) {
    case 0:
      fields.metadata_size = pi_size;
      break;
    case 1:
      fields.metadata_size = pi_size + 8;
      break;
    case 2:
      fields.metadata_size = 64;
      break;
    default:
      fields.metadata_size = pi_size + static_cast<std::uint32_t>(below(random, 120));
      break;
  }
  fields.layout = coin(random) ? extended : separate;
  fields.type = static_cast<PiType>(1 + below(random, 3));
  fields.position = coin(random) ? first : last;
  constexpr unsigned sts_min[] = {0, 16, 0}, sts_max[] = {32, 64, 48};
  const auto g = static_cast<unsigned>(fields.guard);
  const bool edge = below(random, 3) == 0;
  fields.storage_tag_size =
      edge ? (coin(random) ? sts_min[g] : sts_max[g])
           : sts_min[g] + static_cast<unsigned>(below(random, sts_max[g] - sts_min[g] + 1));
  fields.storage_tag_mask = coin(random) ? ~0ull : random();
  return fields;
}

PiTags random_tags(Random& random, const PiFormat& format) {
  PiTags tags{.app_tag = static_cast<std::uint16_t>(below(random, 0xFFFF)),
              .storage_tag = random() & format.storage_tag_max()};
  tags.initial_ref_tag = random() & format.ref_tag_max();
  // Often just below the point where it rolls over.
  if (coin(random))
    tags.initial_ref_tag = (format.ref_tag_max() - below(random, 3)) & format.ref_tag_max();
  return tags;
}

}  // namespace nvpi::test
