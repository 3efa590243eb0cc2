// How an I/O is split: the limits of one command, and what each part gets.
#include <doctest/doctest.h>

#include <vector>

#include "nvme/io.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

TEST_SUITE_BEGIN("split");

TEST_CASE("the most blocks of one command follow from MDTS, layout, PRACT and CTRATT.MEM") {
  struct Row {
    PiFormat::Fields fields;
    std::uint64_t mdts_bytes;
    bool excludes_metadata;
    PiOwner pi;
    std::uint64_t transfer_limit, blocks;
  };
  const PiFormat::Fields e512{512, 8, extended, type_1}, s512{512, 8, separate, type_1},
      e4k{4096, 8, extended, type_1}, s4k{4096, 8, separate, type_1},
      e4k64{4096, 64, extended, type_1};
  constexpr auto host = PiOwner::host, device = PiOwner::device;
  const Row rows[] = {
      {e512, 131072, false, host, 0, 252},      {e4k, 131072, false, host, 0, 31},
      {e4k64, 131072, false, host, 0, 31},      {e512, 524288, false, host, 0, 1008},
      {e4k, 524288, false, host, 0, 127},       {e4k64, 524288, false, host, 0, 126},
      {e512, 1048576, false, host, 0, 2016},    {e4k, 1048576, false, host, 0, 255},
      {e4k64, 1048576, false, host, 0, 252},    {s512, 131072, false, host, 0, 256},
      {s4k, 131072, false, host, 0, 32},        {s512, 1048576, false, host, 0, 2048},
      {e512, 131072, false, device, 0, 256},    {e4k, 1048576, false, device, 0, 256},
      {e4k64, 131072, false, device, 0, 31},  // PRACT hides nothing: the metadata is larger
      {e512, 131072, true, host, 0, 256},       {e4k64, 131072, true, host, 0, 32},
      {e512, 131072, true, host, 131072, 252},  // the kernel counts what it moves
      {s512, 0, false, host, 0, 65536},         {s4k, 0, false, host, 0, 65536},
      {s512, 1u << 30, false, host, 0, 65536},  {s4k, 0, false, host, 1 << 17, 32},
      {s4k, 1 << 20, false, host, 1 << 17, 32}, {e512, 131072, false, PiOwner::caller, 0, 252},
  };
  for (const Row& row : rows) {
    CAPTURE(describe(row.fields));
    CAPTURE(row.mdts_bytes);
    const Geometry geometry{.format = make_format(row.fields),
                            .nsid = 1,
                            .block_count = 1 << 20,
                            .max_transfer_size = row.mdts_bytes,
                            .mdts_excludes_metadata = row.excludes_metadata,
                            .transfer_limit = row.transfer_limit};
    CHECK(max_blocks_per_command(geometry, row.pi) == row.blocks);
  }
}

TEST_CASE("R07: the parts of a split I/O have their own memory, address and reference tag") {
  struct Row {
    PiFormat::Fields fields;
    std::vector<std::uint64_t> counts;
  };
  const Row rows[] = {
      {{4096, 8, separate, type_1}, {32, 32, 32, 4}},
      {{4096, 8, extended, type_1}, {31, 31, 31, 7}},
      {{4096, 8, separate, type_2}, {32, 32, 32, 4}},
      {{4096, 8, separate, type_3}, {32, 32, 32, 4}},
  };
  for (const Row& row : rows) {
    CAPTURE(describe(row.fields));
    const PiFormat format = make_format(row.fields);
    Geometry geometry = geometry_of(format, 1ull << 33);
    geometry.max_transfer_size = 131072;
    const std::size_t stride = format.data_stride();  // in place, as the device sees it
    AlignedBytes data(100 * stride), metadata(format.extended() ? 0 : 800);
    // Type 1 rolls over within the range; type 2 starts anywhere.
    const std::uint64_t slba = 0xFFFFFFF0;
    Io io{.opcode = Opcode::write,
          .slba = slba,
          .block_count = 100,
          .memory = {data.memory(), metadata.memory()},
          .mode = TransferMode::zero_copy};
    std::uint64_t initial = slba;
    if (row.fields.type != type_1) io.ref_tag = initial = 0xFFFFFFC0;
    REQUIRE(check_io(io, geometry).has_value());
    std::uint64_t first = 0;
    for (const std::uint64_t count : row.counts) {
      CAPTURE(first);
      CHECK(std::min(max_blocks_per_command(geometry, io.pi), 100 - first) == count);
      const Io part = part_of(io, geometry, first, count);
      CHECK(part.slba == slba + first);
      CHECK(part.block_count == count);
      CHECK(part.memory.data.contiguous() == data.bytes().data() + first * stride);
      CHECK(part.memory.data.size() == count * stride);
      if (!format.extended()) {
        CHECK(part.memory.metadata.contiguous() == metadata.bytes().data() + first * 8);
        CHECK(part.memory.metadata.size() == count * 8);
      }
      CHECK(check_io(part, geometry).has_value());
      const Command command = command_of(part, geometry);
      const std::uint64_t expected =
          row.fields.type == type_3 ? initial : (initial + first) & 0xFFFFFFFF;
      CHECK(command.cdw14 == expected);
      CHECK(command.slba() == slba + first);
      CHECK(command.block_count() == count);
      CHECK(command.data_len == count * stride);
      CHECK(command.metadata_len == (format.extended() ? 0 : count * 8));
      first += count;
    }
    CHECK(first == 100);
  }
}

TEST_SUITE_END();
