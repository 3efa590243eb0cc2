#include "nvme/status.h"

#include <doctest/doctest.h>

#include <string>

#include "nvme/command.h"

using namespace nvpi;

TEST_SUITE_BEGIN("status");

TEST_CASE("R40: a status keeps SCT, SC, DNR and More, as Linux hands it over") {
  const Status status(0x4287);
  CHECK(status.sct() == 2);
  CHECK(status.sc() == 0x87);
  CHECK(status.code() == 0x287);
  CHECK(status.dnr());
  CHECK_FALSE(status.more());
  CHECK_FALSE(status.ok());
  CHECK(Status(0x2281).more());
  CHECK_FALSE(Status(0x2281).dnr());
  CHECK(Status(0x7800).ok());  // retry delay, More and DNR are no error
  CHECK(Status(0xFFFF).raw() == 0x7FFF);
  CHECK(Status(0x0181).with_dnr().raw() == 0x4181);
  CHECK(Completion{.result = 0x4282}.status().code() == 0x282);
}

TEST_CASE("path errors are SCT 3 and nothing else") {
  for (const unsigned raw : {0x300, 0x302, 0x370, 0x371, 0x4370}) {
    CHECK(Status(static_cast<std::uint16_t>(raw)).is_path_error());
  }
  for (const unsigned raw : {0x003, 0x103, 0x281, 0x282, 0x400, 0x700}) {
    CHECK_FALSE(Status(static_cast<std::uint16_t>(raw)).is_path_error());
  }
}

TEST_CASE("a name depends on SCT and SC together, and on nothing else") {
  struct Row {
    std::uint16_t raw;
    const char* name;
  };
  const Row rows[] = {
      {0x000, "Successful Completion"},
      {0x002, "Invalid Field in Command"},
      {0x004, "Data Transfer Error"},
      {0x00F, "Data SGL Length Invalid"},
      {0x013, "PRP Offset Invalid"},
      {0x080, "LBA Out of Range"},
      {0x180, "Conflicting Attributes"},
      {0x280, "Write Fault"},
      {0x181, "Invalid Protection Information"},
      {0x281, "Unrecovered Read Error"},
      {0x282, "End-to-end Guard Check Error"},
      {0x6282, "End-to-end Guard Check Error"},
      {0x283, "End-to-end Application Tag Check Error"},
      {0x284, "End-to-end Reference Tag Check Error"},
      {0x285, "Compare Failure"},
      {0x287, "Deallocated or Unwritten Logical Block"},
      {0x288, "End-to-end Storage Tag Check Error"},
      {0x371, "Command Aborted By Host"},
      {0x27F, ""},
      {0x7FF, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.raw);
    CHECK(std::string(Status(row.raw).name()) == row.name);
  }
}

TEST_SUITE_END();
