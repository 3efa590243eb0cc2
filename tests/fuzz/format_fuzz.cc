// Whatever a device or a user says of a format: it is refused with a reason, or it holds together.
#include <cstring>
#include <string_view>

#include "input.h"
#include "nvme/emulated_namespace.h"
#include "nvme/identify.h"

using namespace nvpi;

namespace {

void check(const PiFormat& format) {
  fuzz::require(format.data_size() >= 512);
  fuzz::require(format.data_stride() >= format.data_size());
  if (!format.has_pi()) return;
  fuzz::require(format.pi_offset() + format.pi_size() <= format.metadata_size());
  fuzz::require(format.guarded_metadata_size() + format.pi_size() <= format.metadata_size());
  fuzz::require(format.ref_tag_size() <= 64 && format.storage_tag_size() <= 64);
  fuzz::require((format.storage_tag_mask() & ~format.storage_tag_max()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("file") == std::string_view::npos) {  // no images on the fuzzer's disk
    const auto options = EmulatedNamespace::parse(text);
    if (options) {
      const auto format = PiFormat::create(options->format);
      if (format) check(*format);
    }
  }
  IdentifyPage page{}, extension{};
  std::memcpy(page.data(), data, std::min(size, page.size()));
  if (size > page.size()) {
    std::memcpy(extension.data(), data + page.size(), std::min(size - page.size(), extension.size()));
  }
  for (const IdentifyPage* second : {static_cast<const IdentifyPage*>(nullptr),
                                     static_cast<const IdentifyPage*>(&extension)}) {
    const auto format = format_of(decode_namespace(1, page, second));
    if (format) check(*format);
  }
  decode_controller(page);
  return 0;
}
