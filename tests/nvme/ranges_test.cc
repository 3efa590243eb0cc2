// The range lists of Dataset Management and Copy, byte by byte, and what the emulated namespace
// makes of them.
#include <doctest/doctest.h>

#include <cstring>
#include <string_view>

#include "nvme/ranges.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/reference.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

const PiFormat::Fields small{512, 8, separate, type_1};

// A namespace whose device keeps the payload of every command.
struct Recorder {
  explicit Recorder(std::uint64_t blocks, const QueueOptions& queue = {.depth = 4}) {
    const PiFormat format = make_format(small);
    auto made = std::make_unique<ScriptedTransport>(format, blocks);
    transport = made.get();
    transport->answer = [this](const ScriptedTransport::Sent& sent,
                               std::size_t) -> std::optional<std::int32_t> {
      const Command& command = sent.command;
      payloads.emplace_back(command.data, command.data + command.data_len);
      return 0;
    };
    auto opened = Namespace::open(std::unique_ptr<Transport>(std::move(made)), {.queue = queue});
    REQUIRE(opened.has_value());
    ns = std::move(*opened);
  }
  const Command& command(std::size_t i) const { return transport->sent().at(i).command; }

  ScriptedTransport* transport = nullptr;
  std::vector<Bytes> payloads;
  std::unique_ptr<Namespace> ns;
};

std::uint64_t little(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = value << 8 | std::to_integer<unsigned>(bytes.at(at + i));
  return value;
}

}  // namespace

TEST_SUITE_BEGIN("ranges");

TEST_CASE(
    "deallocate: 16 bytes a range: attributes, length in blocks (1's based), SLBA; NR is 0's "
    "based") {
  Recorder recorder(1ull << 60);
  const BlockRange ranges[] = {{0x0123456789ABCDEF, 0x11223344}, {7, 1}};
  REQUIRE(recorder.ns->deallocate(ranges).has_value());
  REQUIRE(recorder.payloads.size() == 1);
  CHECK(hex(recorder.payloads[0]) ==
        "0000000044332211efcdab8967452301"
        "00000000010000000700000000000000");
  const Command& command = recorder.command(0);
  CHECK(static_cast<unsigned>(command.opcode) == 0x09);
  CHECK(command.cdw10 == 1);
  CHECK(command.cdw11 == 4);  // AD
  CHECK((command.cdw12 | command.cdw13 | command.cdw14 | command.cdw15) == 0);
  CHECK(command.data_len == 32);
  CHECK(command.metadata == nullptr);
}

TEST_CASE("deallocate: 256 ranges a command, longer lists in several, empty ranges not at all") {
  for (const auto& [count, commands] : {std::pair{1u, 1u}, {256u, 1u}, {257u, 2u}, {600u, 3u}}) {
    CAPTURE(count);
    Recorder recorder(1u << 20);
    std::vector<BlockRange> ranges;
    for (std::uint32_t i = 0; i < count; ++i) {
      ranges.push_back({i * 10, 3});
      ranges.push_back({i * 10 + 5, 0});
    }
    REQUIRE(recorder.ns->deallocate(ranges).has_value());
    REQUIRE(recorder.payloads.size() == commands);
    std::uint32_t seen = 0;
    for (std::size_t c = 0; c < commands; ++c) {
      const std::uint32_t here = recorder.command(c).cdw10 + 1;
      REQUIRE(recorder.payloads[c].size() == std::size_t{here} * 16);
      for (std::uint32_t i = 0; i < here; ++i, ++seen) {
        CHECK(little(recorder.payloads[c], i * 16 + 4, 4) == 3);
        CHECK(little(recorder.payloads[c], i * 16 + 8, 8) == seen * 10);
      }
    }
    CHECK(seen == count);
  }
  Recorder recorder(1000);
  CHECK(recorder.ns->deallocate({}).has_value());
  CHECK(recorder.payloads.empty());
}

TEST_CASE("deallocate: a range above 2^32 - 1 blocks becomes several") {
  Recorder recorder(1ull << 40);
  const BlockRange range{5, 0x2'0000'0010};
  REQUIRE(recorder.ns->deallocate({&range, 1}).has_value());
  REQUIRE(recorder.payloads.size() == 1);
  const Bytes& payload = recorder.payloads[0];
  REQUIRE(payload.size() == 48);
  const std::uint64_t expected[][2] = {
      {5, 0xFFFFFFFF}, {0x1'0000'0004, 0xFFFFFFFF}, {0x2'0000'0003, 0x12}};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(little(payload, i * 16 + 8, 8) == expected[i][0]);
    CHECK(little(payload, i * 16 + 4, 4) == expected[i][1]);
  }
}

TEST_CASE("deallocate: a range past the end is refused, and then none of the others is sent") {
  Recorder recorder(1000);
  for (const BlockRange& bad :
       {BlockRange{999, 2}, BlockRange{1000, 1}, BlockRange{~0ull, 2}, BlockRange{1, ~0ull}}) {
    const BlockRange ranges[] = {{0, 8}, bad};
    CHECK(recorder.ns->deallocate(ranges).error().code == Errc::out_of_range);
  }
  CHECK(recorder.payloads.empty());
}

TEST_CASE("deallocate: small slots only mean more commands") {
  Recorder recorder(1000, {.depth = 2, .slot_size = 520});
  std::vector<BlockRange> ranges;
  for (std::uint32_t i = 0; i < 100; ++i) ranges.push_back({i, 1});
  CHECK(recorder.ns->deallocate(ranges).has_value());
}

TEST_CASE("deallocate: blocks read as zeros and count as unprotected, their neighbours stay") {
  const auto [device, ns] = open_emulated(make_format(small));
  Bytes data(16 * 512, std::byte{0x77});
  const Io write{
      .opcode = Opcode::write, .slba = 8, .block_count = 16, .memory = {memory_of(data), {}}};
  REQUIRE(ns->transfer(write).has_value());
  const BlockRange ranges[] = {{9, 2}, {20, 4}};
  REQUIRE(ns->deallocate(ranges).has_value());
  const auto counts = ns->transfer({.slba = 8, .block_count = 16, .memory = {memory_of(data), {}}});
  REQUIRE(counts.has_value());
  CHECK(counts->unprotected == 6);
  CHECK(counts->verified == 10);
  for (std::size_t i = 0; i < 16; ++i) {
    const bool gone = (i >= 1 && i < 3) || i >= 12;
    CHECK(all_equal(std::span(data).subspan(i * 512, 512), gone ? 0 : 0x77));
  }
  check_all_slots_are_back(*ns);
}

// Expected from the figures of the descriptor formats: SLBA in bytes 15:8, NLB (0's based) in
// 17:16, SNSID in 3:0 of formats 2 and 3. 32 bytes: ELBT in 27:24, ELBAT in 29:28, ELBATM in 31:30.
// 40 bytes: ELBT in 35:26, ELBAT in 37:36, ELBATM in 39:38.
TEST_CASE("R22: copy descriptors, byte by byte, for every format and both orders of the tags") {
  struct Row {
    std::string_view name;
    PiFormat::Fields format;
    std::uint8_t descriptor;
    std::uint32_t snsid;
    PiTags tags;
    std::string_view little, big;  // the tags alone
  };
  const Row rows[] = {
      {"16b",
       {512, 8, separate, type_2},
       0,
       0,
       {0x1234, 0xFF0F, 0, 0x01020304},
       "0403020134120fff",
       "010203041234ff0f"},
      {"16b, sts 8",
       {512, 8, separate, type_2, last, guard_16b, 8},
       2,
       9,
       {0x1234, 0xFFFF, 0xAB, 0x123456},
       "563412ab3412ffff",
       "ab1234561234ffff"},
      {"64b",
       {4096, 16, separate, type_2, last, guard_64b},
       1,
       0,
       {0x1234, 0xFFFF, 0, 0x456789ABCDEF},
       "efcdab896745000000003412ffff",
       "00000000456789abcdef1234ffff"},
      {"64b, sts 16",
       {4096, 16, separate, type_2, last, guard_64b, 16},
       3,
       9,
       {0x1234, 0xFFFF, 0xABCD, 0x12345678},
       "78563412cdab000000003412ffff",
       "00000000abcd123456781234ffff"},
      {"32b, sts 16: all 80 bits",
       {4096, 16, separate, type_2, last, guard_32b, 16},
       1,
       0,
       {0x1234, 0xFFFF, 0xBEEF, 0x1122334455667788},
       "8877665544332211efbe3412ffff",
       "beef11223344556677881234ffff"},
      {"no PI", {512, 0}, 0, 0, {0x1234, 0xFFFF, 0, 5}, "0000000000000000", "0000000000000000"},
  };
  for (const Row& row : rows) {
    const PiFormat format = make_format(row.format);
    CHECK(copy_descriptor_format(format, row.snsid != 0) == row.descriptor);
    for (const TagOrder order : {TagOrder::little_endian, TagOrder::big_endian}) {
      CAPTURE(row.name);
      CAPTURE(order == TagOrder::big_endian);
      const CopyRange ranges[] = {
          {.slba = 0x0123456789ABCDEF,
           .block_count = 0x10000,
           .snsid = row.snsid,
           .expected = row.tags},
          {.slba = 5, .block_count = 1, .snsid = row.snsid, .expected = row.tags}};
      const RangeCommand made = make_copy(
          format, 7, {.ranges = ranges, .descriptor_format = row.descriptor, .tag_order = order});
      const std::size_t size = (row.descriptor & 1) == 0 ? 32 : 40;
      REQUIRE(made.payload.size() == 2 * size);
      const std::string head = (row.snsid == 0 ? "0000000000000000" : "0900000000000000");
      const std::string_view tags = order == TagOrder::big_endian ? row.big : row.little;
      const std::string first =
          head + "efcdab8967452301" + "ffff" + std::string(2 * size - 36 - tags.size(), '0');
      const std::string second =
          head + "0500000000000000" + "0000" + std::string(2 * size - 36 - tags.size(), '0');
      CHECK(hex(made.payload) == first + std::string(tags) + second + std::string(tags));
      if (order == TagOrder::big_endian) continue;
      std::vector<CopyRange> parsed;
      const CopyRequest back = parse_copy(format, made.command, made.payload.data(), parsed);
      REQUIRE(parsed.size() == 2);
      CHECK(back.descriptor_format == row.descriptor);
      CHECK(parsed[0].slba == 0x0123456789ABCDEF);
      CHECK(parsed[0].block_count == 0x10000);
      CHECK(parsed[0].snsid == row.snsid);
      if (!format.has_pi()) continue;
      CHECK(parsed[1].expected.app_tag == row.tags.app_tag);
      CHECK(parsed[1].expected.app_tag_mask == row.tags.app_tag_mask);
      CHECK(parsed[1].expected.storage_tag == row.tags.storage_tag);
      CHECK(parsed[1].expected.initial_ref_tag == row.tags.initial_ref_tag);
    }
  }
}

TEST_CASE(
    "a copy command: NR, descriptor format, PRINFOR and PRINFOW in CDW12, tags of the write part") {
  const PiFormat format = make_format({4096, 16, separate, type_1, last, guard_64b, 16});
  const std::vector<CopyRange> ranges(256, CopyRange{.slba = 1, .block_count = 2});
  const CopyRequest request{.ranges = ranges,
                            .destination = 0x1'2345'6789,
                            .descriptor_format = 1,
                            .write = {.pract = true,
                                      .checks = {true, false, true, true},
                                      .tags = {0xABCD, 0xFFF0, 0xBEEF, 0x23456789}},
                            .read_pract = true,
                            .read_checks = {false, true, false, true},
                            .force_unit_access = true};
  const Command command = make_copy(format, 7, request).command;
  CHECK(static_cast<unsigned>(command.opcode) == 0x19);
  CHECK(command.nsid == 7);
  CHECK(command.cdw10 == 0x23456789);
  CHECK(command.cdw11 == 1);
  // FUA | PRINFOW: PRACT, guard, reference tag | STCW | PRINFOR: PRACT, application, reference tag
  // | format | NR
  CHECK(command.cdw12 == (0x40000000u | 0x20000000u | 0x10000000u | 0x04000000u | 0x01000000u |
                          0xB000u | 0x100u | 0xFFu));
  CHECK(command.cdw14 == 0x23456789);
  CHECK(command.cdw3 == 0x0000BEEF);
  CHECK(command.cdw2 == 0);
  CHECK(command.cdw15 == 0xFFF0ABCD);
}

TEST_CASE("a copy of no ranges or of more than a command holds is refused, nothing is sent") {
  Recorder recorder(1000);
  CHECK(recorder.ns->copy({}).error().code == Errc::no_blocks);
  const std::vector<CopyRange> ranges(257, CopyRange{.slba = 1, .block_count = 1});
  CHECK(recorder.ns->copy({.ranges = ranges}).error().code == Errc::wrong_length);
  CHECK(recorder.payloads.empty());
}

TEST_SUITE_END();
