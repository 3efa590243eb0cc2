// The vectors of tests/data/vectors.json that need no device: guards, tuples, and checks over
// blocks.
#include <doctest/doctest.h>

#include "pi/guard.h"
#include "support/formats.h"
#include "support/reference.h"
#include "support/vectors.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

BlockBuffer blocks_of(const PiFormat& format, std::uint32_t count, const Bytes& data,
                      const Bytes& metadata) {
  BlockBuffer blocks(format, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t ds = format.data_size(), ms = format.metadata_size();
    const auto block = std::span(data).subspan(i * ds, ds);
    const auto beside = std::span(metadata).subspan(i * ms, ms);
    std::copy(block.begin(), block.end(), blocks.data(i).begin());
    std::copy(beside.begin(), beside.end(), blocks.metadata(i).begin());
  }
  return blocks;
}

Bytes metadata_of(BlockBuffer& blocks) {
  Bytes all;
  for (std::uint32_t i = 0; i < blocks.count(); ++i) {
    all.insert(all.end(), blocks.metadata(i).begin(), blocks.metadata(i).end());
  }
  return all;
}

std::uint16_t status_of(PiTag tag) {
  switch (tag) {
    case PiTag::guard:
      return 0x282;
    case PiTag::app_tag:
      return 0x283;
    case PiTag::ref_tag:
      return 0x284;
    case PiTag::storage_tag:
      return 0x288;
  }
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("vectors");

TEST_CASE("the reference and the library compute the published guards") {
  const auto vectors = crc_vectors();
  REQUIRE(vectors.size() == 41);
  for (const CrcVector& vector : vectors) {
    CAPTURE(vector.name);
    for (unsigned type = 0; type < 3; ++type) {
      CHECK(reference_guard(static_cast<GuardType>(type), vector.bytes) == vector.guards[type]);
      CHECK(guard(static_cast<GuardType>(type), vector.bytes) == vector.guards[type]);
      Bytes target(vector.bytes.size());
      CHECK(copy_and_guard(static_cast<GuardType>(type), target.data(), vector.bytes) ==
            vector.guards[type]);
    }
  }
}

TEST_CASE("all 28 generation vectors come out byte for byte, by protect and by generate") {
  const auto vectors = generate_vectors();
  REQUIRE(vectors.size() == 28);
  for (const GenerateVector& vector : vectors) {
    for (const MetadataLayout layout : {MetadataLayout::separate, MetadataLayout::extended}) {
      PiFormat::Fields fields = vector.fields;
      fields.layout = layout;
      CAPTURE(vector.id);
      CAPTURE(describe(fields));
      const PiFormat format = make_format(fields);
      if (format.type() == PiType::type_1) {
        CHECK(ref_tag_of_lba(format, vector.slba) == vector.tags.initial_ref_tag);
      }
      BlockBuffer blocks(format, vector.blocks);
      protect(format, vector.tags, blocks.blocks(),
              {UserMemory::read_only(vector.data), UserMemory::read_only(vector.metadata)});
      CHECK(hex(metadata_of(blocks)) == hex(vector.expected_metadata));

      BlockBuffer in_place = blocks_of(format, vector.blocks, vector.data, vector.metadata);
      generate(format, vector.tags, in_place.blocks());
      CHECK(hex(metadata_of(in_place)) == hex(vector.expected_metadata));
      CHECK(in_place.raw_data() == blocks.raw_data());
    }
  }
}

TEST_CASE("the 26 check vectors about blocks fail or pass where they should, in both layouts") {
  const auto vectors = check_vectors();
  REQUIRE(vectors.size() == 28);
  int of_the_command = 0;
  for (const CheckVector& vector : vectors) {
    // Two are refused before any block is looked at: nvme/vectors_test.cc has them.
    if (vector.status == 0x181) {
      ++of_the_command;
      continue;
    }
    for (const MetadataLayout layout : {MetadataLayout::separate, MetadataLayout::extended}) {
      PiFormat::Fields fields = vector.fields;
      fields.layout = layout;
      CAPTURE(vector.id);
      CAPTURE(describe(fields));
      const PiFormat format = make_format(fields);
      BlockBuffer blocks = blocks_of(format, vector.blocks, vector.data, vector.metadata);
      std::uint16_t status = 0;
      std::int64_t failing_block = -1;
      const auto first = [&](const PiMismatch& mismatch) {
        status = status_of(mismatch.tag);
        failing_block = mismatch.block_index;
        return false;
      };
      verify(format, {.tags = vector.tags, .checks = vector.checks, .first_lba = vector.slba},
             blocks.blocks(), first);
      CHECK(status == vector.status);
      CHECK(failing_block == vector.failing_block);
    }
  }
  CHECK(of_the_command == 2);
}

TEST_SUITE_END();
