// The published vectors of tests/data/vectors.json.
#pragma once

#include <string>
#include <vector>

#include "support/memory.h"

namespace nvpi::test {

struct CrcVector {
  std::string name;  // "512 inc + 8 a5"
  Bytes bytes;
  std::uint64_t guards[3];
};

struct GenerateVector {
  std::string id;
  PiFormat::Fields fields;
  std::uint64_t slba = 0;
  std::uint32_t blocks = 0;
  PiTags tags;
  Bytes data;      // of all blocks
  Bytes metadata;  // of all blocks, as it is before the PI is made
  std::uint32_t cdw2 = 0, cdw3 = 0, cdw14 = 0, cdw15 = 0;
  Bytes expected_metadata;
};

struct CheckVector {
  std::string id;
  PiFormat::Fields fields;
  std::uint64_t slba = 0;
  std::uint32_t blocks = 0;
  Bytes data, metadata;  // as they lie on the media
  PiTags tags;           // of the command
  PiChecks checks;
  std::uint16_t status = 0;
  std::int64_t failing_block = -1;
};

std::vector<CrcVector> crc_vectors();
std::vector<GenerateVector> generate_vectors();
std::vector<CheckVector> check_vectors();

}  // namespace nvpi::test
