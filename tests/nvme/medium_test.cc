// Where blocks lie: memory, or an image file that lasts and knows its format.
#include "nvme/medium.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/emulated.h"
#include "support/formats.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

const PiFormat::Fields plain{512, 8, separate, type_1};

Error error_of(const std::string& path, const PiFormat::Fields& fields,
               std::uint64_t blocks = 100) {
  const auto medium = Medium::in_file(path, make_format(fields), blocks);
  REQUIRE_FALSE(medium.has_value());
  return medium.error();
}

void make_image(const std::string& path, const PiFormat::Fields& fields = plain) {
  REQUIRE(Medium::in_file(path, make_format(fields), 100).has_value());
}

void overwrite(const std::string& path, std::streamoff at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file);
}

}  // namespace

TEST_SUITE_BEGIN("medium");

TEST_CASE("data, metadata and states are kept apart, in memory and in a file") {
  Random random(test_seed());
  for (const PiFormat::Fields& fields : typical_formats()) {
    CAPTURE(describe(fields));
    const TemporaryFile file;
    const PiFormat format = make_format(fields);
    const std::size_t ds = format.data_size(), ms = format.metadata_size();
    for (const bool in_file : {false, true}) {
      auto medium =
          in_file ? Medium::in_file(file.path(), format, 100) : Medium::in_memory(format, 100);
      REQUIRE(medium.has_value());
      const Bytes data = random_bytes(random, 3 * ds), metadata = random_bytes(random, 3 * ms);
      const BlockState written[] = {BlockState::written, BlockState::written,
                                    BlockState::unwritten};
      REQUIRE((*medium)->write_data(97, data) == 0);
      REQUIRE((*medium)->write_metadata(97, metadata) == 0);
      REQUIRE((*medium)->write_states(97, written) == 0);
      Bytes data_back(4 * ds), metadata_back(4 * ms);
      BlockState states[4] = {};
      REQUIRE((*medium)->read_data(96, data_back) == 0);
      REQUIRE((*medium)->read_metadata(96, metadata_back) == 0);
      REQUIRE((*medium)->read_states(96, states) == 0);
      CHECK(all_equal(std::span(data_back).first(ds), 0));
      CHECK(all_equal(std::span(metadata_back).first(ms), 0));
      CHECK(copy_of(std::span(data_back).subspan(ds)) == data);
      CHECK(copy_of(std::span(metadata_back).subspan(ms)) == metadata);
      CHECK(states[0] == BlockState::unwritten);
      CHECK(states[1] == BlockState::written);
      CHECK((*medium)->flush() == 0);
    }
  }
}

TEST_CASE("an image lasts, and says what it is") {
  const TemporaryFile file;
  const PiFormat::Fields fields{
      4096, 64, extended, type_2, PiPosition::first, GuardType::guard_64b, 16, 0xFFF0};
  const Bytes block(4096, std::byte{0x42});
  {
    const auto medium = Medium::in_file(file.path(), make_format(fields), 100);
    REQUIRE(medium.has_value());
    REQUIRE((*medium)->write_data(99, block) == 0);
  }
  const auto description = Medium::describe(file.path());
  REQUIRE(description.has_value());
  CHECK(description->block_count == 100);
  CHECK(describe(description->format) == describe(fields));
  CHECK(description->format.storage_tag_mask() == 0xFFF0);
  const auto medium = Medium::in_file(file.path(), make_format(fields), 100);
  REQUIRE(medium.has_value());
  Bytes back(4096);
  REQUIRE((*medium)->read_data(99, back) == 0);
  CHECK(back == block);
}

TEST_CASE("an image that is open is refused to a second one, and free afterwards") {
  const TemporaryFile file;
  {
    const auto first = Medium::in_file(file.path(), make_format(plain), 100);
    REQUIRE(first.has_value());
    const Error error = error_of(file.path(), plain);
    CHECK(error.code == Errc::bad_medium);
    CHECK(error.detail == file.path());
    CHECK(std::string(error.rule).find("in use") != std::string::npos);
  }
  CHECK(Medium::in_file(file.path(), make_format(plain), 100).has_value());
}

TEST_CASE("an image is refused with every format but its own") {
  const TemporaryFile file;
  make_image(file.path(), {4096, 64, separate, type_1});
  const PiFormat::Fields others[] = {
      {512, 64, separate, type_1},
      {4096, 16, separate, type_1},
      {4096, 64, extended, type_1},
      {4096, 64, separate, type_2},
      {4096, 64, separate, none},
      {4096, 64, separate, type_1, PiPosition::first},
      {4096, 64, separate, type_1, PiPosition::last, GuardType::guard_64b},
      {4096, 64, separate, type_1, PiPosition::last, GuardType::guard_16b, 8},
  };
  for (const PiFormat::Fields& other : others) {
    CAPTURE(describe(other));
    CHECK(error_of(file.path(), other).code == Errc::bad_medium);
  }
  CHECK(error_of(file.path(), {4096, 64, separate, type_1}, 99).code == Errc::bad_medium);
  CHECK(Medium::in_file(file.path(), make_format({4096, 64, separate, type_1}), 100).has_value());
}

TEST_CASE("without PI the fields that do not matter do not make another format") {
  const TemporaryFile file;
  make_image(file.path(), {4096, 16, separate, none});
  const PiFormat same =
      make_format({4096, 16, separate, none, PiPosition::first, GuardType::guard_64b, 16, 0xFF});
  CHECK(Medium::in_file(file.path(), same, 100).has_value());
}

TEST_CASE("a damaged or foreign file is refused and left alone") {
  const std::string cases[] = {"foreign", "short", "magic", "data size", "PI type", "no blocks"};
  for (const std::string& name : cases) {
    CAPTURE(name);
    const TemporaryFile file;
    make_image(file.path());
    if (name == "foreign") std::ofstream(file.path()) << "somebody's letter";
    if (name == "short") REQUIRE(truncate(file.path().c_str(), 20000) == 0);
    if (name == "magic") overwrite(file.path(), 0, "X");
    if (name == "data size") overwrite(file.path(), 24, std::string(1, '\1'));
    if (name == "PI type") overwrite(file.path(), 33, std::string(1, '\7'));
    if (name == "no blocks") overwrite(file.path(), 8, std::string(8, '\0'));
    const auto size = std::filesystem::file_size(file.path());
    CHECK(error_of(file.path(), plain).code == Errc::bad_medium);
    CHECK(std::filesystem::file_size(file.path()) == size);
    if (name != "short") CHECK_FALSE(Medium::describe(file.path()).has_value());
  }
}

TEST_CASE("what is no regular file, or not there, is no image") {
  CHECK(error_of("/dev/null", plain).code == Errc::bad_medium);
  CHECK(error_of("/tmp", plain).code == Errc::open_failed);
  const Error missing = error_of("/nonexistent/image", plain);
  CHECK(missing.code == Errc::open_failed);
  CHECK(missing.os_errno == ENOENT);
  CHECK(Medium::describe("/nonexistent/image").error().code == Errc::open_failed);
}

TEST_CASE("a size that no address space holds is refused, also where the arithmetic wraps around") {
  const PiFormat format = make_format({512, 65535, separate, none});
  // 66048 bytes a block with its state: this many are 2^64 bytes and a few.
  const std::uint64_t wraps = 279293000147008ull;
  REQUIRE(wraps * 66048 < 1u << 20);
  CHECK_FALSE(Medium::in_memory(format, wraps).has_value());
  CHECK_FALSE(Medium::in_memory(format, 1ull << 48).has_value());
  CHECK_FALSE(Medium::in_memory(make_format(plain), 1ull << 60).has_value());
}

TEST_SUITE_END();
