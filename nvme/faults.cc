#include "nvme/faults.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>

#include "nvme/number.h"

namespace nvpi {
namespace {

constexpr std::size_t previous_limit = 256;  // blocks
constexpr std::uint64_t no_lba = ~0ull;

struct Name {
  std::string_view name;
  FaultKind kind;
  std::uint64_t value_limit;  // 0: takes none
};
constexpr Name names[] = {
    {"bitflip-data", FaultKind::bitflip_data, 0},
    {"bitflip-metadata", FaultKind::bitflip_metadata, 0},
    {"stale-read", FaultKind::stale_read, 0},
    {"bitflip-data-write", FaultKind::bitflip_data_write, 0},
    {"bitflip-metadata-write", FaultKind::bitflip_metadata_write, 0},
    {"misdirected-write", FaultKind::misdirected_write, 0},
    {"lost-write", FaultKind::lost_write, 0},
    {"torn-write", FaultKind::torn_write, 0},
    {"status", FaultKind::status, 0x7FFF},
    {"errno", FaultKind::error, 4095},
    {"delay", FaultKind::delay, 60'000},
    {"reorder", FaultKind::reorder, 0},
    {"drop", FaultKind::drop, 0},
    {"remove", FaultKind::remove, 0},
};

tl::unexpected<Error> refuse(std::string_view rule) {
  return fail({.code = Errc::bad_option, .rule = rule, .detail = "fault"});
}

// The text up to the first of `separators`, taken off.
std::string_view take_until(std::string_view& text, std::string_view separators) {
  const std::string_view part = text.substr(0, text.find_first_of(separators));
  text.remove_prefix(part.size());
  return part;
}

Result<Fault> parse_fault(std::string_view text) {
  Fault fault;
  const std::string_view what = take_until(text, ":@");
  const std::string_view name = what.substr(0, what.find('/'));
  const auto* known = std::find_if(std::begin(names), std::end(names),
                                   [&](const Name& n) { return n.name == name; });
  if (known == std::end(names)) {
    return refuse("must be bitflip-data, bitflip-metadata, stale-read, bitflip-data-write, "
                  "bitflip-metadata-write, misdirected-write, lost-write, torn-write, status/CODE, errno/N, "
                  "delay/MS, reorder, drop or remove, each with :PROBABILITY or @N behind it");
  }
  fault.kind = known->kind;
  if ((known->value_limit > 0) != (name.size() < what.size())) {
    return refuse("must have a /VALUE with status, errno and delay, and only with these");
  }
  if (known->value_limit > 0) {
    const auto value = parse_number(what.substr(name.size() + 1));
    if (!value || *value == 0 || *value > known->value_limit) return refuse("has a /VALUE out of range");
    fault.value = static_cast<std::uint32_t>(*value);
  }
  const bool by_number = text.starts_with('@');
  text.remove_prefix(std::min<std::size_t>(text.size(), 1));
  if (by_number) {
    const auto nth = parse_number(text);
    if (!nth || *nth == 0) return refuse("must count commands from 1 behind the @");
    fault.nth = *nth;
    return fault;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fault.probability);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  // Not a number is in no range.
  if (!whole || !(fault.probability > 0 && fault.probability <= 1)) {
    return refuse("must have :PROBABILITY, above 0 and at most 1, or @N behind each kind");
  }
  return fault;
}

}  // namespace

Result<std::vector<Fault>> Faults::parse(std::string_view text) {
  std::vector<Fault> list;
  for (;;) {
    const auto fault = parse_fault(take_until(text, "+"));
    if (!fault) return fail(fault.error());
    list.push_back(*fault);
    if (text.empty()) return list;
    text.remove_prefix(1);
  }
}

FaultInjector::FaultInjector(const Faults& faults, const PiFormat& format)
    : format_(format), state_(faults.seed) {
  bool keeps_previous = false;
  for (const Fault& fault : faults.list) {
    armed_.push_back({fault});
    keeps_previous |= fault.kind == FaultKind::stale_read;
  }
  block_.resize(format, 1);
  if (!keeps_previous) return;
  previous_.assign(previous_limit, block_);
  previous_lba_.assign(previous_limit, no_lba);
}

// SplitMix64: the same on every machine, which the distributions of the standard library are not.
std::uint64_t FaultInjector::random() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

// Every fault of the kind has its chance, whether another one struck or not: they do not shift each other.
const Fault* FaultInjector::strike(FaultKind kind) {
  const Fault* struck = nullptr;
  for (Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    if (fault.kind != kind) continue;
    const bool hit = fault.nth > 0 ? ++armed.chances == fault.nth
                                   : static_cast<double>(random() >> 11) * 0x1p-53 < fault.probability;
    if (hit) struck = &fault;
  }
  return struck;
}

FaultInjector::Fate FaultInjector::next_fate() {
  Fate fate;
  if (armed_.empty()) return fate;
  if (strike(FaultKind::remove) != nullptr) device_is_gone_ = true;
  if (const Fault* fault = strike(FaultKind::status)) fate.result = static_cast<std::int32_t>(fault->value);
  if (const Fault* fault = strike(FaultKind::error)) fate.result = -static_cast<std::int32_t>(fault->value);
  if (const Fault* fault = strike(FaultKind::delay)) fate.delay = std::chrono::milliseconds(fault->value);
  if (strike(FaultKind::reorder) != nullptr) fate.overtakes = random();
  fate.dropped = strike(FaultKind::drop) != nullptr;
  if (device_is_gone_) fate = {.result = -ENODEV};
  return fate;
}

void FaultInjector::flip_bit(std::vector<std::byte>& bytes, std::size_t block_size, std::size_t block) {
  if (block_size == 0) return;
  const std::uint64_t bit = below(block_size * 8);
  bytes[block * block_size + bit / 8] ^= std::byte{1} << (bit % 8);
}

int FaultInjector::flip_on_medium(Medium& medium, std::uint64_t lba) {
  const bool data = strike(FaultKind::bitflip_data) != nullptr;
  const bool metadata = strike(FaultKind::bitflip_metadata) != nullptr;
  if (!data && !metadata) return 0;
  if (const int error = medium.read(lba, block_)) return error;
  if (data) flip_bit(block_.data, format_.data_size(), 0);
  if (metadata) flip_bit(block_.metadata, format_.metadata_size(), 0);
  return medium.write(lba, block_.view(format_, 0, 1));
}

int FaultInjector::read(Medium& medium, std::uint64_t lba, StagedBlocks& blocks) {
  if (armed_.empty()) return medium.read(lba, blocks);
  if (const int error = flip_on_medium(medium, lba + below(blocks.count()))) return error;
  if (const int error = medium.read(lba, blocks)) return error;
  if (!previous_.empty() && strike(FaultKind::stale_read) != nullptr) make_stale(lba, blocks);
  return 0;
}

void FaultInjector::make_stale(std::uint64_t lba, StagedBlocks& blocks) {
  const std::size_t first = below(blocks.count());
  for (std::size_t n = 0; n < blocks.count(); ++n) {  // the next one that has a past
    const std::size_t i = (first + n) % blocks.count();
    const std::size_t slot = (lba + i) % previous_.size();
    if (previous_lba_[slot] != lba + i) continue;
    const StagedBlocks& old = previous_[slot];
    std::copy(old.data.begin(), old.data.end(),
              blocks.data.begin() + static_cast<std::ptrdiff_t>(i * old.data.size()));
    std::copy(old.metadata.begin(), old.metadata.end(),
              blocks.metadata.begin() + static_cast<std::ptrdiff_t>(i * old.metadata.size()));
    blocks.states[i] = old.states[0];
    return;
  }
}

int FaultInjector::keep_previous(Medium& medium, std::uint64_t lba, std::size_t count) {
  if (previous_.empty()) return 0;
  const std::size_t skipped = count - std::min(count, previous_.size());
  for (std::size_t i = skipped; i < count; ++i) {
    const std::size_t slot = (lba + i) % previous_.size();
    if (const int error = medium.read(lba + i, previous_[slot])) return error;
    previous_lba_[slot] = lba + i;
  }
  return 0;
}

// The cut leaves a byte at least on both sides.
int FaultInjector::tear(Medium& medium, std::uint64_t lba, StagedBlocks& blocks) {
  const std::size_t block = below(blocks.count());
  if (const int error = medium.read(lba + block, block_)) return error;
  const auto cut = static_cast<std::ptrdiff_t>(1 + below(format_.data_size() - 1));
  const auto begin = blocks.data.begin() + static_cast<std::ptrdiff_t>(block * format_.data_size());
  std::copy(block_.data.begin() + cut, block_.data.end(), begin + cut);
  return 0;
}

int FaultInjector::write(Medium& medium, std::uint64_t lba, StagedBlocks& blocks) {
  const std::size_t count = blocks.count();
  if (armed_.empty()) return medium.write(lba, blocks.view(format_, 0, count));
  if (const int error = keep_previous(medium, lba, count)) return error;
  if (strike(FaultKind::bitflip_data_write) != nullptr) {
    flip_bit(blocks.data, format_.data_size(), below(count));
  }
  if (strike(FaultKind::bitflip_metadata_write) != nullptr) {
    flip_bit(blocks.metadata, format_.metadata_size(), below(count));
  }
  if (strike(FaultKind::torn_write) != nullptr) {
    if (const int error = tear(medium, lba, blocks)) return error;
  }
  const bool lost = strike(FaultKind::lost_write) != nullptr;
  const bool misdirected = strike(FaultKind::misdirected_write) != nullptr;
  if (!lost && !misdirected) return medium.write(lba, blocks.view(format_, 0, count));

  const std::size_t missing = below(count);
  if (const int error = medium.write(lba, blocks.view(format_, 0, missing))) return error;
  const auto rest = blocks.view(format_, missing + 1, count - missing - 1);
  if (const int error = medium.write(lba + missing + 1, rest)) return error;
  if (!misdirected || medium.block_count() == 1) return 0;
  const std::uint64_t distance = 1 + below(medium.block_count() - 1);  // never its own place
  return medium.write((lba + missing + distance) % medium.block_count(), blocks.view(format_, missing, 1));
}

}  // namespace nvpi
