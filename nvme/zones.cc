#include "nvme/zones.h"

namespace nvpi {
namespace {

// Zoned Namespace Command Set Specification 1.1, figure 18.
constexpr Status zone_boundary_error{0x1B8};
constexpr Status zone_is_full{0x1B9};
constexpr Status zone_invalid_write{0x1BC};

}  // namespace

Zones::Zones(std::uint64_t size, std::uint64_t capacity, std::uint64_t block_count)
    : size_(size), capacity_(capacity), write_pointers_(size == 0 ? 0 : block_count / size) {
  for (std::uint64_t i = 0; i < write_pointers_.size(); ++i) write_pointers_[i] = i * size_;
}

Status Zones::check_write(std::uint64_t lba, std::uint64_t count) const {
  if (is_full(lba)) return zone_is_full.with_dnr();
  if (lba != write_pointer(lba)) return zone_invalid_write.with_dnr();
  return count <= end_of(lba) - lba ? status::success : zone_boundary_error.with_dnr();
}

}  // namespace nvpi
