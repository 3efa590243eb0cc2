#include "contenders.h"

#include <isa-l.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "pi/guard_kernels.h"
#include "pi/protect.h"

namespace nvpi::bench {
namespace {

constexpr PiTags tags = {.app_tag = 0x1234, .initial_ref_tag = 0x56789};

Blocks blocks_of(const PiFormat& format, std::byte* slot, std::size_t size) {
  return {slot, format.extended() ? nullptr : slot + longest_io,
          static_cast<std::uint32_t>(size / format.data_size())};
}

const GuardKernel::Functions& functions_of(const GuardKernel& kernel, const PiFormat& format) {
  return kernel.functions[static_cast<std::size_t>(format.guard())];
}

// The least that a block costs beside its data: something is stored where its PI goes.
void store_guard(std::byte* pi, std::uint64_t guard) {
  std::memcpy(pi, &guard, sizeof guard);
}

// One block after the other in the extended layout. `copy(target, source, readable_end)` copies the
// data of a block and returns its guard.
template <typename Copy>
Transfer block_by_block(const PiFormat& format, Direction direction, Copy copy) {
  const std::size_t data_size = format.data_size();
  const std::size_t stride = data_size + format.metadata_size();
  if (direction == Direction::write) {
    return [=](std::byte* user, std::byte* slot, std::size_t size) {
      const std::byte* const end = user + size;
      for (; user < end; user += data_size, slot += stride) {
        store_guard(slot + data_size, copy(slot, user, end));
      }
    };
  }
  return [=](std::byte* user, std::byte* slot, std::size_t size) {
    const std::byte* const end = user + size;
    std::uint64_t sum = 0;
    for (; user < end; user += data_size, slot += stride) sum ^= copy(user, slot, nullptr);
    asm volatile("" : : "r"(sum));
  };
}

Contender kernel_contender(const GuardKernel& kernel, const PiFormat& format, Direction direction) {
  const GuardKernel::Functions& functions = functions_of(kernel, format);
  const auto function =
      direction == Direction::write ? functions.copy_and_guard : functions.guard_and_copy;
  const auto copy = [=, size = format.data_size()](std::byte* target, const std::byte* source,
                                                   const std::byte* readable_end) {
    return function(target, source, size, 0, readable_end);
  };
  return {kernel.name, format, block_by_block(format, direction, copy), true};
}

PiFormat with_layout(const PiFormat& format, MetadataLayout layout) {
  PiFormat::Fields fields = format.fields();
  fields.layout = layout;
  return *PiFormat::create(fields);
}

// The public functions, end to end: tuples, tags and the walk over user memory are part of it.
Contender public_contender(const PiFormat& format, Direction direction) {
  const std::string layout = format.metadata_size() == 0 ? ""
                             : format.extended()         ? "_extended"
                                                         : "_separate";
  if (direction == Direction::write) {
    return {"protect" + layout, format,
            [=](std::byte* user, std::byte* slot, std::size_t size) {
              protect(format, tags, blocks_of(format, slot, size), {UserMemory(user, size), {}});
            },
            true};
  }
  return {"verify_and_copy" + layout, format,
          [=](std::byte* user, std::byte* slot, std::size_t size) {
            const Blocks blocks = blocks_of(format, slot, size);
            const VerifyCounts counts =
                verify_and_copy(format, {.tags = tags}, blocks, {UserMemory(user, size), {}});
            if (counts.mismatched > 0) std::abort();  // or it would measure something else
          },
          true};
}

const GuardKernel& kernel_named(std::string_view name) {
  for (const GuardKernel* kernel : guard_kernels()) {
    if (kernel->name == name && kernel->supported()) return *kernel;
  }
  return guard_portable;
}

}  // namespace

Contender plain_memcpy(const PiFormat& format, Direction direction) {
  if (direction == Direction::write) {
    return {"memcpy", format, [](std::byte* user, std::byte* slot, std::size_t size) {
              std::memcpy(slot, user, size);
            }};
  }
  return {"memcpy", format, [](std::byte* user, std::byte* slot, std::size_t size) {
            std::memcpy(user, slot, size);
          }};
}

Contender isal_reference(const PiFormat& format, Direction direction) {
  const std::size_t size = format.data_size();
  if (format.guard() == GuardType::guard_16b) {
    const auto copy = [=](std::byte* target, std::byte* source, const std::byte*) -> std::uint64_t {
      return crc16_t10dif_copy(0, reinterpret_cast<std::uint8_t*>(target),
                               reinterpret_cast<std::uint8_t*>(source), size);
    };
    return {"crc16_t10dif_copy", format, block_by_block(format, direction, copy)};
  }
  const bool known = functions_of(guard_isal, format).guard != nullptr;
  const GuardKernel& kernel = known ? guard_isal : kernel_named("pclmul");
  const auto guard_of = functions_of(kernel, format).guard;
  const auto copy = [=](std::byte* target, const std::byte* source, const std::byte*) {
    std::memcpy(target, source, size);
    return guard_of(target, size, 0);
  };
  return {std::string("memcpy_then_") + kernel.name, format,
          block_by_block(format, direction, copy)};
}

std::vector<Contender> nvpi_contenders(const PiFormat& format, Direction direction) {
  if (!format.has_pi()) return {public_contender(format, direction)};
  std::vector<Contender> result;
  for (const GuardKernel* kernel : guard_kernels()) {
    if (kernel == &guard_portable || !kernel->supported()) continue;
    if (functions_of(*kernel, format).guard == nullptr) continue;
    result.push_back(kernel_contender(*kernel, format, direction));
  }
  for (const auto layout : {MetadataLayout::extended, MetadataLayout::separate}) {
    result.push_back(public_contender(with_layout(format, layout), direction));
  }
  return result;
}

void fill_slot(const PiFormat& format, std::byte* slot, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 >> 3);
  protect(format, tags, blocks_of(format, slot, size), {UserMemory(data.data(), size), {}});
}

}  // namespace nvpi::bench
