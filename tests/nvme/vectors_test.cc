// The vectors of tests/data/vectors.json that are about commands: dwords, and the status that a
// controller gives.
#include <doctest/doctest.h>

#include "support/emulated.h"
#include "support/formats.h"
#include "support/vectors.h"

using namespace nvpi;
using namespace nvpi::test;

TEST_SUITE_BEGIN("vectors");

TEST_CASE("all 28 generation vectors give CDW2, CDW3, CDW14 and CDW15") {
  const auto vectors = generate_vectors();
  REQUIRE(vectors.size() == 28);
  for (const GenerateVector& vector : vectors) {
    CAPTURE(vector.id);
    const PiFormat format = make_format(vector.fields);
    Command command = make_io(Opcode::write, 1, vector.slba, vector.blocks);
    set_pi(command, format, {.tags = vector.tags});
    CHECK(command.cdw2 == vector.cdw2);
    CHECK(command.cdw3 == vector.cdw3);
    CHECK(command.cdw14 == vector.cdw14);
    CHECK(command.cdw15 == vector.cdw15);
    CHECK(command.slba() == vector.slba);
  }
}

TEST_CASE("all 28 check vectors give their status as commands to a controller") {
  const auto vectors = check_vectors();
  REQUIRE(vectors.size() == 28);
  int run = 0;
  for (const CheckVector& vector : vectors) {
    CAPTURE(vector.id);
    // C25 lies at an LBA that no medium reaches; pi/vectors_test.cc checks its blocks.
    if (vector.slba > 1ull << 40) continue;
    ++run;
    const PiFormat format = make_format(vector.fields);
    // In a sparse file: two terabytes are more address space than ThreadSanitizer leaves.
    const TemporaryFile image;
    const auto device = make_emulated(
        format, {.block_count = vector.slba + vector.blocks, .mdts = 0, .file = image.path()});
    Medium& medium = device->medium();
    const std::vector<BlockState> states(vector.blocks, BlockState::written);
    REQUIRE(medium.write_data(vector.slba, vector.data) == 0);
    REQUIRE(medium.write_metadata(vector.slba, vector.metadata) == 0);
    REQUIRE(medium.write_states(vector.slba, states) == 0);

    Bytes data(vector.data.size()), metadata(vector.metadata.size());
    Command command = make_io(Opcode::read, 1, vector.slba, vector.blocks);
    set_pi(command, format, {.checks = vector.checks, .tags = vector.tags});
    command.data = data.data();
    command.data_len = static_cast<std::uint32_t>(data.size());
    command.metadata = metadata.data();
    command.metadata_len = static_cast<std::uint32_t>(metadata.size());
    CHECK(carry_out(*device, command).code() == vector.status);
    if (vector.status == 0) {
      CHECK(data == vector.data);
      CHECK(hex(metadata) == hex(vector.metadata));
    }
    // The same blocks on their way in.
    command.opcode = Opcode::write;
    command.data = const_cast<std::byte*>(vector.data.data());
    command.metadata = const_cast<std::byte*>(vector.metadata.data());
    CHECK(carry_out(*device, command).code() == vector.status);
  }
  CHECK(run == 27);
}

TEST_SUITE_END();
