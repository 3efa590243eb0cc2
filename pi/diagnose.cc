#include "pi/diagnose.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "pi/bits.h"

namespace nvpi {
namespace {

// A CRC by its parameters; polynomials with the highest power of x in the highest bit, without x^width.
struct Crc {
  unsigned width;
  bool reflected;
  std::uint64_t polynomial;
  std::uint64_t other_polynomial;  // CRC-16/CCITT, CRC-32 (IEEE 802.3), CRC-64 (ECMA-182)
  // Bursts up to this length are looked for: longer ones would fit too much by chance.
  unsigned burst_limit;

  constexpr std::uint64_t ones() const { return ~0ull >> (64 - width); }
};
constexpr Crc crcs[] = {{16, false, 0x8BB7, 0x1021, 1},
                        {32, true, 0x1EDC6F41, 0x04C11DB7, 8},
                        {64, true, 0xAD93D23594C93659, 0x42F0E1EBA9EA3693, 32}};

std::uint64_t reversed_bits(std::uint64_t value, unsigned width) {
  return reversed(value) >> (64 - width);
}

std::uint64_t swapped_bytes(std::uint64_t value, unsigned width) {
  return __builtin_bswap64(value) >> (64 - width);
}

// Bit by bit: for polynomials that no guard has.
class OtherCrc {
 public:
  OtherCrc(const Crc& crc, std::uint64_t seed) : crc_(crc), state_(seed) {}
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned shift = crc_.reflected ? i : 7 - i;
        const std::uint64_t in = std::to_integer<std::uint64_t>(byte) >> shift & 1;
        const bool carry = (state_ >> (crc_.width - 1) & 1) != in;
        state_ = (state_ << 1 & crc_.ones()) ^ (carry ? crc_.other_polynomial : 0);
      }
    }
  }
  std::uint64_t value() const { return crc_.reflected ? reversed_bits(state_, crc_.width) : state_; }

 private:
  const Crc& crc_;
  std::uint64_t state_;  // the highest power in the highest bit
};

bool all(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](std::byte byte) { return byte == value; });
}

}  // namespace

class Diagnoser {
 public:
  Diagnoser(const PiFormat& format, const Expectation& expected, std::span<const std::byte> data,
            std::span<const std::byte> metadata)
      : format_(format),
        crc_(crcs[static_cast<unsigned>(format.guard())]),
        expected_(expected),
        data_(data),
        metadata_(metadata),
        pi_(metadata.subspan(format.pi_offset(), format.pi_size())),
        stored_(decode_tuple(format, pi_.data())),
        computed_(guard_over(format.guarded_metadata_size())),
        by_guard_(std::ldexp(1.0, -static_cast<int>(crc_.width))) {}

  Diagnosis run() {
    if (expected_.checks.guard && stored_.guard != computed_) {
      look_at_contents();
      look_at_guard();
      look_at_syndrome();
    } else {
      look_at_tags();
    }
    const auto begin = result_.causes_.begin();
    std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(result_.count_),
                     [](const Cause& a, const Cause& b) { return a.chance < b.chance; });
    return result_;
  }

 private:
  // Every cause that is tried passes here, so that what chance explains is counted as a whole: `tried` is
  // the chance that any cause of this kind fits.
  void consider(bool fits, Cause cause, double tried) {
    result_.chance_ = std::min(result_.chance_ + tried, 1.0);
    if (!fits) return;
    assert(result_.count_ < Diagnosis::kinds);
    cause.chance = std::min(cause.chance, 1.0);
    result_.causes_[result_.count_++] = cause;
  }
  void consider(bool fits, CauseKind kind, double chance) {
    consider(fits, {.kind = kind, .chance = chance}, chance);
  }

  std::uint64_t guard_over(std::size_t metadata_bytes, std::uint64_t previous = 0) const {
    return guard(format_.guard(), metadata_.first(metadata_bytes), guard(format_.guard(), data_, previous));
  }

  // What was overwritten as a whole. By chance that happens to no block.
  void look_at_contents() {
    const double by_data = std::ldexp(1.0, -static_cast<int>(std::min<std::size_t>(8 * data_.size(), 1000)));
    consider(all(data_, std::byte{0}), CauseKind::zeroed_data, by_data);
    consider(all(data_, std::byte{0xFF}), CauseKind::erased_data, by_data);
    consider(all(pi_, std::byte{0}), CauseKind::zeroed_tuple,
             std::ldexp(1.0, -static_cast<int>(8 * pi_.size())));
  }

  // The guard, made or put down in another way. A way that gives the right guard explains nothing.
  void look_at_guard() {
    const auto is = [this](std::uint64_t other) { return other == stored_.guard; };
    consider(is(swapped_bytes(computed_, crc_.width)), CauseKind::swapped_guard, by_guard_);

    const unsigned guarded = format_.guarded_metadata_size();
    const std::size_t behind = metadata_.size() - format_.pi_offset() - format_.pi_size();
    if (guarded > 0) consider(is(guard_over(0)), CauseKind::data_only_guard, by_guard_);
    if (behind > 0) {
      const std::uint64_t whole = guard(format_.guard(), metadata_.last(behind), computed_);
      consider(is(whole), CauseKind::whole_metadata_guard, by_guard_);
    }
    if (metadata_.size() > format_.pi_size()) {
      // A PI at the front covers no metadata, one at the end all before it.
      const bool now_first = format_.position() == PiPosition::last;
      const std::size_t at = now_first ? 0 : metadata_.size() - format_.pi_size();
      const PiTuple there = decode_tuple(format_, metadata_.data() + at);
      consider(there.guard == guard_over(at), CauseKind::other_position, by_guard_);
    }

    const std::uint64_t all_ones = crc_.ones();
    const std::uint64_t other_seed = guard_over(guarded, all_ones);
    consider(is(other_seed), CauseKind::other_seed, by_guard_);
    if (crc_.reflected) {
      consider(is(computed_ ^ all_ones) || is(other_seed ^ all_ones), CauseKind::not_inverted, 2 * by_guard_);
    }
    OtherCrc other(crc_, crc_.reflected ? all_ones : 0);
    other.add(data_);
    other.add(metadata_.first(guarded));
    consider(is(other.value() ^ (crc_.reflected ? all_ones : 0)), CauseKind::other_polynomial, by_guard_);
  }

  // A CRC is linear: the difference of the guards is the CRC of the flipped bits alone, e(x) * x^(n + width)
  // if n bits follow them. Divided by x once for each bit of the block it shows e(x) itself, which is short
  // if the flipped bits stand together.
  void look_at_syndrome() {
    const std::uint64_t difference = stored_.guard ^ computed_;
    const std::uint64_t covered_bits = 8 * (data_.size() + format_.guarded_metadata_size());
    std::uint64_t rest = crc_.reflected ? reversed_bits(difference, crc_.width) : difference;
    const auto divide_by_x = [&] {
      const bool odd = (rest & 1) != 0;
      if (odd) rest ^= crc_.polynomial;
      rest = rest >> 1 | (odd ? 1ull << (crc_.width - 1) : 0);
    };
    for (unsigned i = 0; i < crc_.width; ++i) divide_by_x();

    Cause shortest{.kind = CauseKind::flipped_bits, .bits = 0xFF};
    for (std::uint64_t following = 0; following < covered_bits; ++following, divide_by_x()) {
      const unsigned length = 64 - static_cast<unsigned>(std::countl_zero(rest));
      if ((rest & 1) == 0 || length > crc_.burst_limit || length >= shortest.bits) continue;
      if (following + length > covered_bits) continue;
      const std::uint64_t first = covered_bits - following - length;
      shortest.offset = static_cast<std::uint32_t>(first / 8);
      shortest.bit = static_cast<std::uint8_t>(crc_.reflected ? first % 8 : 7 - first % 8);
      shortest.bits = static_cast<std::uint8_t>(length);
    }
    // At each place end 2^(length-1) bursts of at most that length.
    const auto chance = [&](unsigned length) {
      return std::ldexp(static_cast<double>(covered_bits), static_cast<int>(length) - 1) * by_guard_;
    };
    shortest.chance = chance(shortest.bits);
    consider(shortest.bits <= crc_.burst_limit, shortest, chance(crc_.burst_limit));
    consider_tuple_bit(difference, 0, crc_.width, 1);
  }

  // One flipped bit in a field of the tuple that begins at this bit and is so wide. `before` is the chance
  // that damage at random is looked at here.
  void consider_tuple_bit(std::uint64_t difference, unsigned first_bit, unsigned width, double before) {
    const double chance = before * std::ldexp(width, -static_cast<int>(width));
    const bool one = std::has_single_bit(difference);
    const unsigned lowest = first_bit + width - 1;  // big endian: its lowest bit comes last
    const unsigned at = one ? lowest - static_cast<unsigned>(std::countr_zero(difference)) : 0;
    consider(one, {.kind = CauseKind::flipped_tuple_bit,
                   .chance = chance,
                   .offset = at / 8,
                   .bit = static_cast<std::uint8_t>(7 - at % 8),
                   .bits = 1},
             chance);
  }

  // The bytes are those that the tuple was made for: which block, which write? That a damaged block gets
  // here is the chance of its guard.
  void look_at_tags() {
    const PiTags& tags = expected_.tags;
    const PiChecks& checks = expected_.checks;
    const std::uint64_t app = checks.app_tag ? (stored_.app_tag ^ tags.app_tag) & tags.app_tag_mask : 0;
    const std::uint64_t storage =
        checks.storage_tag ? (stored_.storage_tag ^ tags.storage_tag) & format_.storage_tag_mask() : 0;
    const std::uint64_t ref =
        checks.ref_tag ? (stored_.ref_tag ^ tags.initial_ref_tag) & format_.ref_tag_max() : 0;
    if ((app | storage | ref) == 0) return;

    // With more than one tag wrong it was no single bit.
    const unsigned app_at = crc_.width, storage_at = app_at + 16;
    const unsigned ref_at = storage_at + format_.storage_tag_size();
    if ((storage | ref) == 0) consider_tuple_bit(app, app_at, 16, by_guard_);
    if ((app | ref) == 0) consider_tuple_bit(storage, storage_at, format_.storage_tag_size(), by_guard_);
    if ((app | storage) == 0) consider_tuple_bit(ref, ref_at, format_.ref_tag_size(), by_guard_);

    if (ref != 0 && format_.type() != PiType::type_3) {
      // The tag has the low bits of an address: the nearest one with these.
      const unsigned unused = 64 - format_.ref_tag_size();
      const auto distance =
          static_cast<std::int64_t>((stored_.ref_tag - tags.initial_ref_tag) << unused) >> unused;
      consider(true, {.kind = CauseKind::other_lba,
                      .chance = by_guard_,
                      .lba = expected_.first_lba + static_cast<std::uint64_t>(distance)},
               by_guard_);
    } else {
      consider(true, CauseKind::other_write, by_guard_);
    }
  }

  const PiFormat& format_;
  const Crc& crc_;
  const Expectation& expected_;
  std::span<const std::byte> data_, metadata_, pi_;
  PiTuple stored_;
  std::uint64_t computed_;
  double by_guard_;
  Diagnosis result_;
};

Diagnosis diagnose(const PiFormat& format, const Expectation& expected, std::span<const std::byte> data,
                   std::span<const std::byte> metadata) noexcept {
  assert(format.has_pi());
  assert(data.size() == format.data_size() && metadata.size() == format.metadata_size());
  return Diagnoser(format, expected, data, metadata).run();
}

}  // namespace nvpi
