// Reads in the caller's memory that are verified there, on devices.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>

#include "blocks.h"

namespace nvpi::test {
namespace {

TEST_CASE("a lazy read delivers and verifies what a bounced one does, at any size and alignment") {
  on_every_target(any, [](Target& target) {
    const PiFormat& format = target.format();
    const std::uint64_t past_mdts = (1u << 19) / format.data_size() + 1;
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{8}, past_mdts}) {
      for (const std::size_t shift : {0, 1, 4}) {
        CAPTURE(count);
        CAPTURE(shift);
        Bytes data = random_bytes(count * format.data_size(), static_cast<std::uint32_t>(count));
        REQUIRE(target.ns().transfer(write_of(800, data, format)));
        Bytes copy(data.size() + shift);
        Io io = read_of(800, data, format);
        io.memory.data = UserMemory(copy.data() + shift, data.size());
        io.mode = TransferMode::lazy;
        const auto counts = target.ns().transfer(io);
        if (!counts) CAPTURE(counts.error().os_errno);
        REQUIRE(counts.has_value());
        CHECK(counts->verified == (format.has_pi() ? count : 0));
        CHECK(std::equal(data.begin(), data.end(), copy.begin() + static_cast<long>(shift)));
      }
    }
    CHECK(target.ns().queue().benign_mismatches() == 0);
    CHECK(target.ns().queue().pool().free_count() == target.ns().queue().pool().slot_count());
  });
}

// Memory whose pages are nowhere neighbours: they are touched in turn with those of another
// mapping.
class ScatteredPages {
 public:
  explicit ScatteredPages(std::size_t size) : size_(size), first_(map()), second_(map()) {
    for (std::size_t at = 0; at < size; at += 4096) first_[at] = second_[at] = std::byte{1};
  }
  ~ScatteredPages() {
    munmap(first_, size_);
    munmap(second_, size_);
  }
  ScatteredPages(const ScatteredPages&) = delete;
  ScatteredPages& operator=(const ScatteredPages&) = delete;
  std::byte* data() { return first_; }

 private:
  std::byte* map() const {
    void* const memory =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    madvise(memory, size_, MADV_NOHUGEPAGE);
    return static_cast<std::byte*>(memory);
  }
  std::size_t size_;
  std::byte *first_, *second_;
};

TEST_CASE(
    "R08: transfers from and to scattered pages are of any size and alignment in every mode") {
  const auto fits = [](const PiFormat::Fields& f) { return f.layout == MetadataLayout::separate; };
  on_every_target(fits, [](Target& target) {
    const PiFormat& format = target.format();
    const std::uint64_t count = (3u << 19) / format.data_size();
    const std::size_t size = count * format.data_size();
    ScatteredPages pages(size + 4096);
    for (const std::size_t shift : {0, 512, 2052}) {
      for (const TransferMode mode :
           {TransferMode::bounce, TransferMode::lazy, TransferMode::zero_copy}) {
        CAPTURE(shift);
        CAPTURE(static_cast<int>(mode));
        const Bytes content = random_bytes(size, static_cast<std::uint32_t>(shift));
        std::copy(content.begin(), content.end(), pages.data() + shift);
        Io io{.opcode = Opcode::write,
              .slba = 3,
              .block_count = count,
              .memory = {UserMemory(pages.data() + shift, size), {}},
              .mode = mode};
        for (const Opcode opcode : {Opcode::write, Opcode::read}) {
          CAPTURE(static_cast<int>(opcode));
          io.opcode = opcode;
          const auto done = target.ns().transfer(io);
          CAPTURE((done ? 0 : done.error().os_errno));
          CHECK(done.has_value());
        }
        CHECK(std::equal(content.begin(), content.end(), pages.data() + shift));
      }
    }
  });
}

TEST_CASE("a lazy read of a damaged block leaves zeros in its place and names it") {
  on_every_target(has_pi, [](Target& target) {
    const PiFormat& format = target.format();
    const std::size_t ds = format.data_size();
    Bytes data = random_bytes(4 * ds, 52);
    REQUIRE(target.ns().transfer(write_of(900, data, format)));
    flip_and_wait(target, Target::Area::data, 902, 33);
    Bytes copy(data.size(), std::byte{0xEE});
    Io io = read_of(900, copy, format);
    io.mode = TransferMode::lazy;
    io.device_checks = PiChecks::none();
    const auto found = target.ns().transfer(io);
    REQUIRE_FALSE(found);
    REQUIRE(found.error().code == Errc::pi_mismatch);
    CHECK(found.error().mismatch_count == 1);
    CHECK(found.error().mismatch.lba == 902);
    CHECK(found.error().mismatch.tag == PiTag::guard);
    std::fill_n(data.begin() + static_cast<long>(2 * ds), ds, std::byte{0});
    CHECK(copy == data);
    CHECK(target.ns().queue().benign_mismatches() == 0);
  });
}

}  // namespace
}  // namespace nvpi::test
