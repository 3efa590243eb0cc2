// Protect, flip one bit, verify: a flip of a byte that the PI covers is found, any other is not, and the
// block that is wrong never reaches the user.
#include <algorithm>
#include <vector>

#include "input.h"
#include "pi/protect.h"

using namespace nvpi;

namespace {

using Bytes = std::vector<std::byte>;

struct Place {
  bool in_data;
  std::size_t offset;  // in the data or the metadata of the block
};

// Whether a change there must be noticed with every check on.
bool is_covered(const PiFormat& format, const Place& place, unsigned bit, const PiTuple& tuple) {
  if (place.in_data || place.offset < format.guarded_metadata_size()) return true;
  if (place.offset < format.pi_offset() || place.offset >= format.pi_offset() + format.pi_size()) {
    return false;
  }
  // In the tuple: every bit but masked storage tag bits, and the reference tag of type 3.
  std::byte changed[16] = {};
  encode_tuple(format, tuple, changed);
  changed[place.offset - format.pi_offset()] ^= static_cast<std::byte>(1u << bit);
  const PiTuple other = decode_tuple(format, changed);
  if (is_escape(format, other)) return false;
  const bool ref_tag = other.ref_tag != tuple.ref_tag && format.type() != PiType::type_3;
  return ref_tag || other.guard != tuple.guard || other.app_tag != tuple.app_tag ||
         ((other.storage_tag ^ tuple.storage_tag) & format.storage_tag_mask()) != 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto format = fuzz::any_format(input);
  if (!format) return 0;
  constexpr std::uint32_t count = 3;
  const PiTags tags{.app_tag = static_cast<std::uint16_t>(input.number<std::uint16_t>() & 0xFFFE),
                    .storage_tag = input.number<std::uint64_t>() & format->storage_tag_max(),
                    .initial_ref_tag = input.number<std::uint64_t>() & format->ref_tag_max()};
  const std::uint32_t bad_block = input.byte() % count;
  const std::size_t where = input.number<std::uint32_t>() % (format->data_size() + format->metadata_size());
  const Place place{where < format->data_size(),
                    where < format->data_size() ? where : where - format->data_size()};
  const unsigned bit = input.byte() % 8;
  const std::size_t cut = input.number<std::uint16_t>() % (std::size_t{count} * format->data_size());

  Bytes user(std::size_t{count} * format->data_size()), user_metadata(std::size_t{count} * format->metadata_size());
  const auto rest = input.rest();
  for (std::size_t i = 0; i < user.size(); ++i) {
    user[i] = static_cast<std::byte>(rest.empty() ? i * 31 : rest[i % rest.size()] + i / rest.size());
  }
  const iovec pieces[] = {{user.data(), cut}, {user.data() + cut, user.size() - cut}};
  Bytes slot(std::size_t{count} * format->data_stride()), slot_metadata(user_metadata.size());
  const Blocks blocks{slot.data(), slot_metadata.data(), count};
  protect(*format, tags, blocks, {UserMemory(std::span(pieces)), UserMemory(user_metadata)});

  const Expectation expected{.tags = tags, .checks = {}, .first_lba = 1000};
  fuzz::require(verify(*format, expected, blocks).verified == count);

  std::byte* const block_data = slot.data() + std::size_t{bad_block} * format->data_stride();
  std::byte* const block_metadata = format->extended()
                                        ? block_data + format->data_size()
                                        : slot_metadata.data() + std::size_t{bad_block} * format->metadata_size();
  const PiTuple tuple = decode_tuple(*format, block_metadata + format->pi_offset());
  (place.in_data ? block_data : block_metadata)[place.offset] ^= static_cast<std::byte>(1u << bit);

  Bytes copy(user.size(), std::byte{0x77});
  std::uint64_t bad_lba = 0;
  const auto sink = [&](const PiMismatch& mismatch) {
    bad_lba = mismatch.lba;
    return true;
  };
  const VerifyCounts counts =
      verify_and_copy(*format, expected, blocks, {UserMemory(std::span(copy)), {}}, sink);
  if (is_covered(*format, place, bit, tuple)) {
    fuzz::require(counts.mismatched == 1 && counts.verified == count - 1 && bad_lba == 1000 + bad_block);
    std::fill_n(user.begin() + std::size_t{bad_block} * format->data_size(), format->data_size(), std::byte{0});
    fuzz::require(copy == user);
  } else {
    fuzz::require(counts.mismatched == 0);
  }
  return 0;
}
