#include "support/vectors.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/reference.h"

namespace nvpi::test {
namespace {

using Json = nlohmann::json;

const Json& document() {
  static const Json json = [] {
    std::ifstream file(NVPI_TEST_DATA "/vectors.json");
    REQUIRE(file);
    return Json::parse(file);
  }();
  return json;
}

std::uint64_t number(const Json& json) {
  return json.is_string() ? std::stoull(json.get<std::string>(), nullptr, 16)
                          : json.get<std::uint64_t>();
}

// One byte of a named pattern. `lba` matters to "mix" only.
std::byte pattern_byte(const std::string& name, std::uint64_t i, std::uint64_t lba) {
  if (name == "zero") return std::byte{0};
  if (name == "ones") return std::byte{0xFF};
  if (name == "a5") return std::byte{0xA5};
  if (name == "inc") return static_cast<std::byte>(i);
  if (name == "dec") return static_cast<std::byte>(0xFF - (i & 0xFF));
  if (name == "inc40") return static_cast<std::byte>(0x40 + i);
  REQUIRE(name == "mix");
  return static_cast<std::byte>(i + 31 * (i >> 8) + 17 * lba + 1);
}

Bytes pattern(const std::string& name, std::uint64_t size, std::uint64_t lba,
              std::uint32_t blocks) {
  Bytes bytes;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    for (std::uint64_t i = 0; i < size; ++i) bytes.push_back(pattern_byte(name, i, lba + block));
  }
  return bytes;
}

PiFormat::Fields fields_of(const Json& json) {
  const auto guard_bits = json.at("guard_bits").get<int>();
  return {.data_size = json.at("data_size"),
          .metadata_size = json.at("metadata_size"),
          .type = static_cast<PiType>(json.at("pi_type").get<int>()),
          .position = json.at("pi_first").get<bool>() ? PiPosition::first : PiPosition::last,
          .guard = static_cast<GuardType>(guard_bits / 32),
          .storage_tag_size = json.at("sts")};
}

PiTags tags_of(const Json& json) {
  return {.app_tag = static_cast<std::uint16_t>(number(json.at("app_tag"))),
          .storage_tag = number(json.at("storage_tag")),
          .initial_ref_tag = number(json.at("initial_ref_tag"))};
}

GenerateVector generate_vector(const Json& json) {
  GenerateVector vector{.id = json.at("id"),
                        .fields = fields_of(json.at("format")),
                        .slba = number(json.at("slba")),
                        .blocks = json.at("blocks"),
                        .tags = tags_of(json),
                        .cdw2 = static_cast<std::uint32_t>(number(json.at("cdw2"))),
                        .cdw3 = static_cast<std::uint32_t>(number(json.at("cdw3"))),
                        .cdw14 = static_cast<std::uint32_t>(number(json.at("cdw14"))),
                        .cdw15 = static_cast<std::uint32_t>(number(json.at("cdw15_mask_ffff")))};
  vector.data =
      pattern(json.at("data_pattern"), vector.fields.data_size, vector.slba, vector.blocks);
  vector.metadata =
      pattern(json.at("metadata_pattern"), vector.fields.metadata_size, 0, vector.blocks);
  for (const Json& text : json.at("metadata")) {
    const Bytes block = from_hex(text.get<std::string>());
    vector.expected_metadata.insert(vector.expected_metadata.end(), block.begin(), block.end());
  }
  return vector;
}

// The media as described: patterns, proper PI from the reference, then the edits.
void lay_out_media(CheckVector& vector, const Json& media) {
  const std::size_t ds = vector.fields.data_size, ms = vector.fields.metadata_size;
  vector.data = pattern(media.at("data_pattern"), ds, vector.slba, vector.blocks);
  vector.metadata = pattern(media.at("metadata_pattern"), ms, 0, vector.blocks);
  const PiTags tags = tags_of(media);
  for (std::uint32_t i = 0; i < vector.blocks; ++i) {
    const auto metadata = std::span(vector.metadata).subspan(i * ms, ms);
    const PiTuple tuple = reference_tuple_of(vector.fields, tags, i,
                                             std::span(vector.data).subspan(i * ds, ds), metadata);
    const Bytes bytes = reference_tuple(vector.fields, tuple);
    std::copy(bytes.begin(), bytes.end(), metadata.begin() + reference_pi_offset(vector.fields));
  }
  for (const Json& edit : media.at("edits")) {
    const Bytes bytes = from_hex(edit.at("bytes").get<std::string>());
    const bool in_data = edit.at("where") == "data";
    Bytes& target = in_data ? vector.data : vector.metadata;
    const std::size_t at = edit.at("block").get<std::size_t>() * (in_data ? ds : ms) +
                           edit.at("offset").get<std::size_t>();
    std::copy(bytes.begin(), bytes.end(), target.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

CheckVector check_vector(const Json& json) {
  const Json& command = json.at("command");
  const auto flag = [&](const char* name) { return command.at(name).get<int>() != 0; };
  CheckVector vector{
      .id = json.at("id"),
      .fields = fields_of(json.at("format")),
      .slba = number(json.at("slba")),
      .blocks = json.at("blocks"),
      .tags = {.app_tag = static_cast<std::uint16_t>(number(command.at("lbat"))),
               .app_tag_mask = static_cast<std::uint16_t>(number(command.at("lbatm"))),
               .storage_tag = number(command.at("lbst")),
               .initial_ref_tag = number(command.at("ilbrt"))},
      .checks = {.guard = flag("grd"),
                 .app_tag = flag("app"),
                 .storage_tag = flag("stc"),
                 .ref_tag = flag("ref")},
      .status = static_cast<std::uint16_t>(number(json.at("expect_status")))};
  vector.fields.storage_tag_mask = number(command.at("lbstm"));
  if (!json.at("failing_block").is_null()) vector.failing_block = json.at("failing_block");
  lay_out_media(vector, json.at("media"));
  return vector;
}

// "512 inc + 8 a5" or "check_123456789".
Bytes bytes_of(const std::string& name) {
  if (name == "check_123456789") return from_hex("313233343536373839");
  Bytes bytes;
  std::istringstream words(name);
  std::size_t size = 0;
  std::string kind, plus;
  while (words >> size >> kind) {
    const Bytes part = pattern(kind, size, 0, 1);
    bytes.insert(bytes.end(), part.begin(), part.end());
    words >> plus;
  }
  return bytes;
}

template <typename Vector>
std::vector<Vector> all_of(const char* name, Vector (*make)(const Json&)) {
  std::vector<Vector> vectors;
  for (const Json& json : document().at(name)) vectors.push_back(make(json));
  return vectors;
}

}  // namespace

std::vector<CrcVector> crc_vectors() {
  std::vector<CrcVector> vectors;
  for (const auto& [name, values] : document().at("crc").items()) {
    vectors.push_back(
        {name,
         bytes_of(name),
         {number(values.at("16")), number(values.at("32")), number(values.at("64"))}});
  }
  return vectors;
}

std::vector<GenerateVector> generate_vectors() {
  return all_of("generate", generate_vector);
}

std::vector<CheckVector> check_vectors() {
  return all_of("check", check_vector);
}

}  // namespace nvpi::test
