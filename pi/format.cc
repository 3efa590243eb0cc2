#include "pi/format.h"

#include <bit>

namespace nvpi {
namespace {

struct GuardRules {
  unsigned tag_space;  // bits of storage and reference tag together
  unsigned storage_tag_min, storage_tag_max;
  std::string_view storage_tag_rule;
};

constexpr GuardRules guard_rules[] = {
    {32, 0, 32, "must be 0 to 32 for a 16b guard"},
    {80, 16, 64, "must be 16 to 64 for a 32b guard"},
    {48, 0, 48, "must be 0 to 48 for a 64b guard"},
};

const GuardRules& rules_of(GuardType guard) { return guard_rules[static_cast<unsigned>(guard)]; }

}  // namespace

tl::expected<PiFormat, FormatError> PiFormat::create(const Fields& fields) noexcept {
  const auto refuse = [](std::string_view field, std::uint64_t value, std::string_view rule) {
    return tl::make_unexpected(FormatError{field, value, rule});
  };
  if (!std::has_single_bit(fields.data_size) || fields.data_size < 512 ||
      fields.data_size > 1u << 20) {
    return refuse("ds", fields.data_size, "must be a power of two from 512 to 1048576");
  }
  if (fields.metadata_size > 0xFFFF) {
    return refuse("ms", fields.metadata_size, "must be at most 65535");
  }
  if (fields.type > PiType::type_3) {
    return refuse("pi", static_cast<std::uint64_t>(fields.type), "must be 0 to 3");
  }
  if (fields.type == PiType::none) return PiFormat(fields);

  if (fields.guard > GuardType::guard_64b) {
    return refuse("pif", static_cast<std::uint64_t>(fields.guard), "must be 0, 1 or 2");
  }
  const bool wide = fields.guard != GuardType::guard_16b;
  if (wide && fields.data_size < 4096) {
    return refuse("ds", fields.data_size, "must be at least 4096 for a 32b or 64b guard");
  }
  if (fields.metadata_size < (wide ? 16u : 8u)) {
    return refuse("ms", fields.metadata_size,
                  wide ? "must be at least 16 for a 32b or 64b guard"
                       : "must be at least 8 for protection information");
  }
  const GuardRules& rules = rules_of(fields.guard);
  if (fields.storage_tag_size < rules.storage_tag_min ||
      fields.storage_tag_size > rules.storage_tag_max) {
    return refuse("sts", fields.storage_tag_size, rules.storage_tag_rule);
  }
  return PiFormat(fields);
}

PiFormat::PiFormat(const Fields& fields) : fields_(fields) {
  if (fields_.metadata_size == 0) fields_.layout = MetadataLayout::separate;
  if (!has_pi()) {
    fields_ = {.data_size = fields.data_size, .metadata_size = fields.metadata_size, .layout = fields_.layout};
    return;
  }
  fields_.storage_tag_mask &= storage_tag_max();
  ref_tag_size_ = rules_of(fields_.guard).tag_space - fields_.storage_tag_size;
  if (fields_.position == PiPosition::last) pi_offset_ = fields_.metadata_size - pi_size();
}

PiFormat PiFormat::without_pi() const {
  Fields fields = fields_;
  fields.type = PiType::none;
  return PiFormat(fields);
}

PiFormat PiFormat::without_metadata() const {
  Fields fields = fields_;
  fields.type = PiType::none;
  fields.metadata_size = 0;
  return PiFormat(fields);
}

}  // namespace nvpi
