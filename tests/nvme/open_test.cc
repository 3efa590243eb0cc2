// Opening a namespace: what is asked of the device, what is refused, and what is done without.
#include <doctest/doctest.h>

#include <cerrno>

#include "nvme/namespace.h"
#include "support/emulated.h"
#include "support/formats.h"
#include "support/scripted_transport.h"

using namespace nvpi;
using namespace nvpi::test;

namespace {

std::unique_ptr<ScriptedTransport> script(const PiFormat::Fields& fields) {
  return std::make_unique<ScriptedTransport>(make_format(fields), 1000);
}

Result<std::unique_ptr<Namespace>> open(std::unique_ptr<ScriptedTransport> transport) {
  return Namespace::open(std::unique_ptr<Transport>(std::move(transport)),
                         {.queue = {.depth = 2, .slot_size = 65536}});
}

bool has(const Namespace& ns, Fallback fallback) {
  return ns.fallbacks().test(static_cast<std::size_t>(fallback));
}

}  // namespace

TEST_SUITE_BEGIN("open");

TEST_CASE("the geometry comes from the device, the NSID too") {
  auto transport = script({512, 8, extended, type_1});
  transport->controller[77] = std::byte{5};  // MDTS
  transport->controller[98] = std::byte{1};  // CTRATT.MEM
  transport->limit = 70000;
  const auto ns = open(std::move(transport));
  REQUIRE(ns.has_value());
  const Geometry& geometry = (*ns)->geometry();
  CHECK(geometry.nsid == 7);
  CHECK(geometry.block_count == 1000);
  CHECK(geometry.format.extended());
  CHECK(geometry.max_transfer_size == 131072);
  CHECK(geometry.mdts_excludes_metadata);
  CHECK(geometry.transfer_limit == 70000);
  CHECK_FALSE(has(**ns, Fallback::io_command_set_id));
  CHECK_FALSE(has(**ns, Fallback::kernel_limits));
}

TEST_CASE("a device without the CNS 05h page is taken for 16b guard, and that is said") {
  auto transport = script({512, 8, separate, type_1});
  transport->extension_error = Error{.code = Errc::status, .status = status::invalid_field};
  const auto ns = open(std::move(transport));
  REQUIRE(ns.has_value());
  CHECK(has(**ns, Fallback::io_command_set_id));
  CHECK((*ns)->format().guard() == GuardType::guard_16b);
}

TEST_CASE("an errno instead of the CNS 05h page is trouble and no fallback") {
  auto transport = script({512, 8, separate, type_1});
  transport->extension_error = Error{.code = Errc::os, .os_errno = EACCES};
  const auto ns = open(std::move(transport));
  REQUIRE_FALSE(ns.has_value());
  CHECK(ns.error().os_errno == EACCES);
}

TEST_CASE("without a known kernel limit a cautious one is used, and that is said") {
  auto transport = script({512, 8, separate, type_1});
  transport->limit = {};
  const auto ns = open(std::move(transport));
  REQUIRE(ns.has_value());
  CHECK(has(**ns, Fallback::kernel_limits));
  CHECK((*ns)->geometry().transfer_limit > 0);
}

TEST_CASE("R09, R24: a format that cannot be is refused at open, with the field named") {
  struct Row {
    PiFormat::Fields fields;
    std::size_t byte;  // of the base page, or of the extension page
    bool in_extension;
    std::uint8_t value;
    const char* field;
  };
  const Row rows[] = {
      {{4096, 0, separate, none}, 29, false, 0x01, "ms"},    // PI type without metadata
      {{4096, 8, extended, type_1}, 29, false, 0x05, "pi"},  // PI type 5
      {{512, 16, separate, type_1}, 13, true, 0x01, "ds"},   // 64b guard on 512-byte blocks
      {{512, 16, extended, type_1}, 13, true, 0x01, "ds"},
      {{4096, 16, separate, type_1}, 12, true, 0x80, "sts"},     // 32b guard without a storage tag
      {{4096, 16, separate, type_1}, 13, true, 0x07, "PIF"},     // qualified, without QPIFS
      {{4096, 16, separate, type_1}, 26, false, 0x05, "FLBAS"},  // a format that is not listed
      {{4096, 16, separate, type_1}, 130, false, 0x08, "LBADS"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.field);
    auto transport = script(row.fields);
    IdentifyPage& page = row.in_extension ? transport->extension : transport->namespace_page;
    page[row.byte] = static_cast<std::byte>(row.value);
    if (row.byte == 13 && row.value == 0x07) page[12] = std::byte{0x80};
    const auto ns = open(std::move(transport));
    REQUIRE_FALSE(ns.has_value());
    CHECK(ns.error().code == Errc::unsupported_format);
    CHECK(std::string(ns.error().field) == row.field);
    CHECK_FALSE(ns.error().rule.empty());
  }
}

TEST_CASE("a bounded emulated device opens by name, and a wrong name says what is wrong") {
  const auto ns = Namespace::open("emu:size=1M,ds=512,ms=8,pi=1,mset=1", {.queue = {.depth = 2}});
  REQUIRE(ns.has_value());
  CHECK((*ns)->block_count() == 2048);
  CHECK((*ns)->format().extended());
  const auto wrong = Namespace::open("emu:ds=513");
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().code == Errc::bad_option);
  CHECK(wrong.error().detail == "ds");
}

TEST_CASE(
    "a block larger than one command may carry is refused with a reason, not with no_blocks") {
  const auto ns = Namespace::open("emu:size=1M,ds=64K,ms=8,mdts=1", {.queue = {.depth = 2}});
  if (!ns) return;  // at open is the best place
  Bytes data(65536);
  const auto result =
      (*ns)->transfer({.opcode = Opcode::write, .block_count = 1, .memory = {memory_of(data), {}}});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code != Errc::no_blocks);
}

TEST_SUITE_END();
