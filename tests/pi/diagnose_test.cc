// diagnose(): damage of every kind, done by hand to blocks whose PI the reference made, is named; damage at
// random is not, but for the share that chance explains.
#include "pi/diagnose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

constexpr std::uint64_t lba = 0x1234'5678;

// Whole blocks, each with metadata on both sides of where a PI may be.
const PiFormat::Fields formats[] = {
    {512, 8, separate, type_1, last, guard_16b, 0},     {4096, 64, extended, type_1, last, guard_16b, 8},
    {4096, 64, separate, type_2, first, guard_16b, 0},  {4096, 16, separate, type_1, last, guard_32b, 16},
    {4096, 64, separate, type_1, last, guard_32b, 32},  {4096, 64, separate, type_1, first, guard_64b, 0},
    {4096, 64, extended, type_2, last, guard_64b, 16},  {4096, 16, separate, type_3, last, guard_64b, 8},
};

struct Block {
  explicit Block(const PiFormat::Fields& fields, Random& random)
      : format(make_format(fields)),
        data(random_bytes(random, format.data_size())),
        metadata(random_bytes(random, format.metadata_size())) {
    expected.tags = random_tags(random, format);
    expected.tags.app_tag_mask = 0xFFFF;
    expected.tags.initial_ref_tag = lba & format.ref_tag_max();
    expected.first_lba = lba;
    remake();
  }
  PiTuple right() const { return reference_tuple_of(format.fields(), expected.tags, 0, data, metadata); }
  void put(const PiTuple& tuple) { put(tuple, format.pi_offset()); }
  void put(const PiTuple& tuple, std::size_t at) {
    const Bytes bytes = reference_tuple(format.fields(), tuple);
    std::copy(bytes.begin(), bytes.end(), metadata.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void put_guard(std::uint64_t value) {
    PiTuple tuple = right();
    tuple.guard = value;
    put(tuple);
  }
  void remake() { put(right()); }
  // The bit that is `at` bits behind the first one, in the order in which the guard takes them.
  void flip(std::size_t at) {
    std::byte& byte = at / 8 < data.size() ? data[at / 8] : metadata[at / 8 - data.size()];
    byte ^= std::byte{1} << bit_of(at);
  }
  unsigned bit_of(std::size_t at) const {
    return static_cast<unsigned>(format.guard() == guard_16b ? 7 - at % 8 : at % 8);
  }
  std::size_t covered_bits() const { return 8 * (data.size() + format.guarded_metadata_size()); }
  Bytes covered(std::size_t metadata_bytes) const {
    Bytes bytes = data;
    const auto first = metadata.begin();
    bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(metadata_bytes));
    return bytes;
  }
  Diagnosis diagnosis() const { return diagnose(format, expected, data, metadata); }

  PiFormat format;
  Bytes data, metadata;
  Expectation expected;
};

const Cause* find(const Diagnosis& diagnosis, CauseKind kind) {
  for (const Cause& cause : diagnosis.causes()) {
    if (cause.kind == kind) return &cause;
  }
  return nullptr;
}

template <typename F>
void on_every_format(F&& body) {
  Random random(test_seed());
  for (const auto& fields : formats) {
    CAPTURE(describe(fields));
    Block block(fields, random);
    body(block, random);
  }
}

// A CRC from its definition, for parameters that no guard has.
std::uint64_t plain_crc(unsigned width, std::uint64_t polynomial, bool reflected, std::uint64_t seed,
                        std::span<const std::byte> bytes) {
  const std::uint64_t mask = low_bits(width);
  std::uint64_t state = seed;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned in = value >> (reflected ? i : 7 - i) & 1;
      const bool carry = ((state >> (width - 1) & 1) ^ in) != 0;
      state = (state << 1 & mask) ^ (carry ? polynomial : 0);
    }
  }
  if (!reflected) return state;
  std::uint64_t mirrored = 0;
  for (unsigned i = 0; i < width; ++i) mirrored |= (state >> i & 1) << (width - 1 - i);
  return mirrored;
}

struct Parameters {
  unsigned width;
  bool reflected;
  std::uint64_t polynomial, other;
};
Parameters parameters_of(GuardType guard) {
  switch (guard) {
    case guard_16b: return {16, false, 0x8BB7, 0x1021};
    case guard_32b: return {32, true, 0x1EDC6F41, 0x04C11DB7};
    default: return {64, true, 0xAD93D23594C93659, 0x42F0E1EBA9EA3693};
  }
}

}  // namespace

TEST_SUITE_BEGIN("diagnose");

TEST_CASE("one flipped bit is found by its byte and bit, first, last and anywhere") {
  on_every_format([](Block& block, Random& random) {
    const std::size_t bits = block.covered_bits();
    for (const std::size_t at : {std::size_t{0}, bits - 1, below(random, bits), below(random, bits)}) {
      CAPTURE(at);
      block.flip(at);
      const auto diagnosis = block.diagnosis();
      const Cause* cause = find(diagnosis, CauseKind::flipped_bits);
      REQUIRE(cause != nullptr);
      CHECK(cause->bits == 1);
      const double values = std::pow(2.0, parameters_of(block.format.guard()).width);
      CHECK(cause->chance == doctest::Approx(std::min(1.0, double(bits) / values)));
      // The 16b guard repeats itself after 32767 bits: there are two places in a block of 4 KiB.
      const bool same = cause->offset == at / 8 && cause->bit == block.bit_of(at);
      if (block.format.guard() != guard_16b || bits <= 32767) {
        CHECK(same);
      } else if (!same) {
        const std::size_t found = std::size_t{cause->offset} * 8 + (7 - cause->bit);
        CHECK((found > at ? found - at : at - found) == 32767);
      }
      block.flip(at);
    }
  });
}

TEST_CASE("a burst is found by its first bit and length, where the guard is wide enough to tell") {
  on_every_format([](Block& block, Random& random) {
    if (block.format.guard() == guard_16b) return;
    const unsigned limit = block.format.guard() == guard_32b ? 8 : 32;
    for (unsigned length = 2; length <= limit; ++length) {
      CAPTURE(length);
      const std::size_t at = below(random, block.covered_bits() - length);
      const Bytes data = block.data, metadata = block.metadata;
      block.flip(at);
      for (unsigned i = 1; i + 1 < length; ++i) {
        if (coin(random)) block.flip(at + i);
      }
      block.flip(at + length - 1);
      const auto diagnosis = block.diagnosis();
      REQUIRE(diagnosis.causes().size() == 1);
      const Cause& cause = diagnosis.causes()[0];
      CHECK(cause.kind == CauseKind::flipped_bits);
      CHECK(cause.offset == at / 8);
      CHECK(cause.bit == block.bit_of(at));
      CHECK(cause.bits == length);
      block.data = data;
      block.metadata = metadata;
    }
  });
}

TEST_CASE("a flipped bit of the tuple is found in every field") {
  on_every_format([](Block& block, Random&) {
    for (unsigned at = 0; at < 8 * block.format.pi_size(); ++at) {
      CAPTURE(at);
      std::byte& byte = block.metadata[block.format.pi_offset() + at / 8];
      byte ^= std::byte{0x80} >> at % 8;
      const auto diagnosis = block.diagnosis();
      const Cause* cause = find(diagnosis, CauseKind::flipped_tuple_bit);
      REQUIRE(cause != nullptr);
      CHECK(cause->offset == at / 8);
      CHECK(cause->bit == 7 - at % 8);
      byte ^= std::byte{0x80} >> at % 8;
    }
  });
}

TEST_CASE("data of zeros and of ones, and a tuple of zeros") {
  on_every_format([](Block& block, Random&) {
    const Bytes data = block.data;
    std::fill(block.data.begin(), block.data.end(), std::byte{0});
    CHECK(block.diagnosis().causes()[0].kind == CauseKind::zeroed_data);
    std::fill(block.data.begin(), block.data.end(), std::byte{0xFF});
    CHECK(block.diagnosis().causes()[0].kind == CauseKind::erased_data);
    block.data = data;
    block.put(PiTuple{});
    const auto diagnosis = block.diagnosis();
    REQUIRE(find(diagnosis, CauseKind::zeroed_tuple) != nullptr);
    CHECK(find(diagnosis, CauseKind::zeroed_data) == nullptr);
  });
}

TEST_CASE("a guard that was made in another way is recognized") {
  on_every_format([](Block& block, Random&) {
    const auto [width, reflected, polynomial, other] = parameters_of(block.format.guard());
    const std::uint64_t ones = low_bits(width), out = reflected ? ones : 0;
    const std::uint64_t seed = reflected ? ones : 0;
    const Bytes covered = block.covered(block.format.guarded_metadata_size());
    const std::uint64_t right = block.right().guard;
    // The parameters are right:
    CHECK((plain_crc(width, polynomial, reflected, seed, covered) ^ out) == right);

    std::uint64_t swapped = 0;
    for (unsigned i = 0; i < width; i += 8) swapped |= (right >> i & 0xFF) << (width - 8 - i);
    // A way that gives the right guard, as a swap of two equal bytes does, leaves nothing to explain.
    const auto names = [&](std::uint64_t guard, CauseKind kind) {
      block.put_guard(guard);
      return guard == right ? block.diagnosis().unknown() : find(block.diagnosis(), kind) != nullptr;
    };
    CHECK(names(swapped, CauseKind::swapped_guard));
    CHECK(names(plain_crc(width, polynomial, reflected, seed ^ ones, covered) ^ out, CauseKind::other_seed));
    if (reflected) {
      CHECK(names(plain_crc(width, polynomial, reflected, seed, covered), CauseKind::not_inverted));
      CHECK(names(plain_crc(width, polynomial, reflected, 0, covered), CauseKind::not_inverted));
    }
    CHECK(names(plain_crc(width, other, reflected, seed, covered) ^ out, CauseKind::other_polynomial));
    if (block.format.guarded_metadata_size() > 0) {
      CHECK(names(reference_guard(block.format.guard(), block.data), CauseKind::data_only_guard));
    }
    if (block.format.position() == first && block.metadata.size() > block.format.pi_size()) {
      Bytes whole = block.data;
      whole.insert(whole.end(), block.metadata.begin() + block.format.pi_size(), block.metadata.end());
      CHECK(names(reference_guard(block.format.guard(), whole), CauseKind::whole_metadata_guard));
    }
  });
}

TEST_CASE("a tuple at the other end of the metadata is found") {
  on_every_format([](Block& block, Random& random) {
    const std::size_t pi_size = block.format.pi_size();
    if (block.metadata.size() == pi_size) return;
    block.metadata = random_bytes(random, block.metadata.size());
    const bool to_front = block.format.position() == last;
    const std::size_t at = to_front ? 0 : block.metadata.size() - pi_size;
    PiTuple tuple = block.right();
    tuple.guard = reference_guard(block.format.guard(), block.covered(at));
    block.put(tuple, at);
    const auto diagnosis = block.diagnosis();
    REQUIRE(find(diagnosis, CauseKind::other_position) != nullptr);
  });
}

TEST_CASE("a whole block of another address or of another write is told from a damaged one") {
  on_every_format([](Block& block, Random&) {
    for (const std::uint64_t there : {lba + 3, lba - 3, lba + 4096 + 1}) {
      PiTuple tuple = block.right();
      tuple.ref_tag = there & block.format.ref_tag_max();
      block.put(tuple);
      const auto diagnosis = block.diagnosis();
      if (block.format.type() == type_3) {
        CHECK(find(diagnosis, CauseKind::other_write) != nullptr);
        continue;
      }
      const Cause* cause = find(diagnosis, CauseKind::other_lba);
      REQUIRE(cause != nullptr);
      CHECK(cause->lba == there);
    }
    PiTuple tuple = block.right();
    tuple.app_tag ^= 0x0A50;
    block.put(tuple);
    REQUIRE(block.diagnosis().causes().size() == 1);
    CHECK(block.diagnosis().causes()[0].kind == CauseKind::other_write);
    block.expected.checks.app_tag = false;
    CHECK(block.diagnosis().unknown());
  });
}

TEST_CASE("a block whose PI fits has no cause") {
  on_every_format([](Block& block, Random&) { CHECK(block.diagnosis().unknown()); });
}

TEST_CASE("random damage is unknown but for the share that chance explains") {
  constexpr int runs = 10'000;
  on_every_format([](Block& block, Random& random) {
    const PiTuple right = block.right();
    int named = 0;
    double chance = 0;
    for (int i = 0; i < runs; ++i) {
      // A CRC makes of random data a random guard: it is the guard that is drawn here.
      PiTuple tuple = right;
      tuple.guard = random() & low_bits(8 * guard_size(block.format.guard()));
      if (tuple.guard == right.guard) continue;
      block.put(tuple);
      const auto diagnosis = block.diagnosis();
      named += diagnosis.unknown() ? 0 : 1;
      chance = diagnosis.chance();
    }
    CAPTURE(chance);
    // Six standard deviations of the count, and 3 for rare ones: at a mean of 0.04, that of a burst in a 64b
    // guard, four in one run come once in 10^7. Two causes may fit the same block, so a little less than the
    // sum.
    const double mean = runs * chance;
    CHECK(named <= mean + 6 * std::sqrt(mean) + 3);
    CHECK(named >= mean * 0.97 - 6 * std::sqrt(mean));
  });
}

TEST_SUITE_END();
