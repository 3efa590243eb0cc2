// Protection information computed without the library: what the tests compare it with.
#pragma once

#include <cstdint>
#include <span>

#include "pi/protect.h"
#include "support/bytes.h"

namespace nvpi::test {

// The finished CRC. From a table that is made bit by bit.
std::uint64_t reference_guard(GuardType type, std::span<const std::byte> bytes);

// A tuple as a string of bits, most significant first: guard, application tag, storage tag,
// reference tag.
Bytes reference_tuple(const PiFormat::Fields& fields, const PiTuple& tuple);

// The tuple that belongs to block `index` of a run with these tags. `metadata` is the whole
// metadata of the block; its PI bytes do not matter.
PiTuple reference_tuple_of(const PiFormat::Fields& fields, const PiTags& tags, std::uint64_t index,
                           std::span<const std::byte> data, std::span<const std::byte> metadata);

unsigned reference_pi_size(GuardType type);                       // bytes
unsigned reference_ref_tag_size(const PiFormat::Fields& fields);  // bits
std::size_t reference_pi_offset(const PiFormat::Fields& fields);  // in the metadata
std::uint64_t low_bits(unsigned count);

}  // namespace nvpi::test
