// protect() and generate() against the reference, over random formats, tags and pieces of memory.
#include "pi/protect.h"

#include <doctest/doctest.h>

#include "support/formats.h"
#include "support/memory.h"
#include "support/reference.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

struct Sample {
  PiFormat format;
  PiTags tags;
  std::uint32_t count;
  Bytes data;
  Bytes metadata;
};

Sample random_sample(Random& random, const PiFormat& format) {
  const auto count = static_cast<std::uint32_t>(1 + below(random, 5));
  return {format, random_tags(random, format), count,
          random_bytes(random, std::size_t{count} * format.data_size()),
          random_bytes(random, std::size_t{count} * format.metadata_size())};
}

std::span<const std::byte> block_of(const Bytes& bytes, std::size_t size, std::uint32_t i) {
  return std::span(bytes).subspan(i * size, size);
}

// What block i must look like: the user's data and metadata, with the tuple in its place.
void check_blocks(const Sample& sample, const Bytes& metadata, BlockBuffer& blocks) {
  const PiFormat::Fields& fields = sample.format.fields();
  for (std::uint32_t i = 0; i < sample.count; ++i) {
    const auto data = block_of(sample.data, fields.data_size, i);
    REQUIRE(copy_of(blocks.data(i)) == copy_of(data));
    Bytes expected = copy_of(block_of(metadata, fields.metadata_size, i));
    if (fields.type != PiType::none) {
      const Bytes tuple =
          reference_tuple(fields, reference_tuple_of(fields, sample.tags, i, data, expected));
      std::copy(tuple.begin(), tuple.end(),
                expected.begin() + static_cast<std::ptrdiff_t>(reference_pi_offset(fields)));
    }
    REQUIRE(hex(blocks.metadata(i)) == hex(expected));
  }
}

void protect_and_check(Random& random, const Sample& sample, bool with_metadata) {
  BlockBuffer blocks(sample.format, sample.count);
  const Scattered data = scatter(random, sample.data);
  const Scattered metadata = scatter(random, sample.metadata);
  protect(sample.format, sample.tags, blocks.blocks(),
          {data.memory(), with_metadata ? metadata.memory() : UserMemory{}});
  // Metadata that the user does not give is zero around the PI.
  const Bytes zeros(sample.metadata.size());
  check_blocks(sample, with_metadata ? sample.metadata : zeros, blocks);
  REQUIRE(data.gathered() == sample.data);
  REQUIRE(metadata.gathered() == sample.metadata);
  REQUIRE(data.surroundings_intact());
}

}  // namespace

TEST_SUITE_BEGIN("protect");

TEST_CASE(
    "protect copies the user's blocks from any pieces and makes the tuples that belong there") {
  Random random(test_seed());
  for (int round = 0; round < 3000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    CAPTURE(round);
    CAPTURE(describe(format));
    protect_and_check(random, random_sample(random, format), coin(random));
  }
}

TEST_CASE("protect without PI in the format copies and makes nothing") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    const PiFormat format = make_format(fields).without_pi();
    CAPTURE(describe(format));
    for (const bool with_metadata : {true, false}) {
      protect_and_check(random, random_sample(random, format), with_metadata);
    }
  }
}

TEST_CASE("protect of no blocks does nothing") {
  const PiFormat format = make_format({512, 8, MetadataLayout::separate, PiType::type_1});
  protect(format, {}, {}, {});
}

TEST_CASE("generate makes the same tuples over blocks where they lie, and changes nothing else") {
  Random random(test_seed());
  for (int round = 0; round < 1000; ++round) {
    const PiFormat format = make_format(random_fields(random));
    CAPTURE(round);
    CAPTURE(describe(format));
    const Sample sample = random_sample(random, format);
    BlockBuffer blocks(format, sample.count);
    for (std::uint32_t i = 0; i < sample.count; ++i) {
      const auto data = block_of(sample.data, format.data_size(), i);
      const auto metadata = block_of(sample.metadata, format.metadata_size(), i);
      std::copy(data.begin(), data.end(), blocks.data(i).begin());
      std::copy(metadata.begin(), metadata.end(), blocks.metadata(i).begin());
    }
    generate(format, sample.tags, blocks.blocks());
    check_blocks(sample, sample.metadata, blocks);
  }
}

TEST_CASE(
    "R12: the guard covers metadata before a last-placed PI and none after a first-placed one") {
  struct Row {
    PiFormat::Fields fields;
    std::uint64_t guard;
  };
  const auto fields = [](std::uint32_t ds, std::uint32_t ms, PiPosition position, GuardType guard,
                         unsigned sts) {
    return PiFormat::Fields{ds, ms, MetadataLayout::separate, PiType::type_1, position, guard, sts};
  };
  // 00, 01, ... FF, repeating, with metadata of A5; published guards.
  const Row rows[] = {
      {fields(4096, 64, last, GuardType::guard_16b, 0), 0x8C05},
      {fields(4096, 64, first, GuardType::guard_16b, 0), 0x8F6D},
      {fields(4096, 16, last, GuardType::guard_16b, 0), 0xAB16},
      {fields(512, 16, last, GuardType::guard_16b, 0), 0xE876},
      {fields(4096, 64, last, GuardType::guard_64b, 0), 0xD48DE6F406E4BA75},  // R13
      {fields(4096, 64, first, GuardType::guard_64b, 0), 0x3E729F5F6750449C},
      {fields(4096, 64, last, GuardType::guard_32b, 16), 0x8B217F5E},
  };
  Random random(test_seed());
  for (const Row& row : rows) {
    CAPTURE(describe(row.fields));
    const PiFormat format = make_format(row.fields);
    Bytes data(row.fields.data_size);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
    const Bytes metadata(row.fields.metadata_size, std::byte{0xA5});
    for (const std::size_t pieces : {1, 2, 7, 4096}) {
      CAPTURE(pieces);
      Scattered memory(random, data.size(), pieces);
      memory.fill(data);
      BlockBuffer blocks(format, 1);
      protect(format, {}, blocks.blocks(), {memory.memory(), UserMemory::read_only(metadata)});
      CHECK(decode_tuple(format, blocks.pi(0).data()).guard == row.guard);
    }
  }
}

TEST_SUITE_END();
