// The text form of EmulatedNamespace::Options.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "nvme/emulated_namespace.h"
#include "nvme/number.h"

namespace nvpi {
namespace {

// What the keys fill in. Some only make sense together, so they are turned into options at the end.
struct Values {
  PiFormat::Fields format{.metadata_size = 8, .type = PiType::type_1};
  std::uint64_t size = 64ull << 20;
  std::uint8_t mdts = 7;
};

struct Key {
  std::string_view name;
  std::uint64_t limit;
  std::string_view rule;
  void (*set)(Values& values, std::uint64_t number);
};

GuardType guard_of(std::uint64_t pif) {
  switch (pif) {
    case 0: case 16: return GuardType::guard_16b;
    case 1: case 32: return GuardType::guard_32b;
    case 2: case 64: return GuardType::guard_64b;
    default: return static_cast<GuardType>(3);  // refused by PiFormat::create
  }
}

constexpr Key keys[] = {
    {"size", 1ull << 60, "must be a size such as 64M", [](Values& v, std::uint64_t n) { v.size = n; }},
    {"ds", 1u << 20, "must be a block size such as 512 or 4096",
     [](Values& v, std::uint64_t n) { v.format.data_size = static_cast<std::uint32_t>(n); }},
    {"ms", 0xFFFF, "must be 0 to 65535",
     [](Values& v, std::uint64_t n) { v.format.metadata_size = static_cast<std::uint32_t>(n); }},
    {"mset", 1, "must be 0 (separate) or 1 (extended)",
     [](Values& v, std::uint64_t n) { v.format.layout = static_cast<MetadataLayout>(n); }},
    {"pi", 3, "must be 0 to 3",
     [](Values& v, std::uint64_t n) { v.format.type = static_cast<PiType>(n); }},
    {"pil", 1, "must be 0 (last) or 1 (first)",
     [](Values& v, std::uint64_t n) { v.format.position = static_cast<PiPosition>(n); }},
    {"pif", 64, "must be 16, 32 or 64 (or 0, 1 or 2)",
     [](Values& v, std::uint64_t n) { v.format.guard = guard_of(n); }},
    {"sts", 64, "must be 0 to 64",
     [](Values& v, std::uint64_t n) { v.format.storage_tag_size = static_cast<unsigned>(n); }},
    {"lbstm", ~0ull, "must be a mask",
     [](Values& v, std::uint64_t n) { v.format.storage_tag_mask = n; }},
    {"mdts", 20, "must be 0 to 20",
     [](Values& v, std::uint64_t n) { v.mdts = static_cast<std::uint8_t>(n); }},
};

tl::unexpected<Error> refuse(std::string_view key, std::string_view rule) {
  return fail({.code = Errc::bad_option, .rule = rule, .detail = std::string(key)});
}

Result<void> set(Values& values, std::string_view name, std::string_view value) {
  const Key* key =
      std::find_if(std::begin(keys), std::end(keys), [&](const Key& k) { return k.name == name; });
  if (key == std::end(keys)) {
    return refuse(name, "is not one of file, size, ds, ms, mset, pi, pil, pif, sts, lbstm, mdts");
  }
  const auto number = parse_number(value);
  if (!number || *number > key->limit) return refuse(name, key->rule);
  key->set(values, *number);
  return {};
}

}  // namespace

Result<EmulatedNamespace::Options> EmulatedNamespace::parse(std::string_view text) {
  Options options;
  Values values;
  bool format_given = false;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(pair.size(), name.size() + 1));
    if (name == "file") {
      if (value.empty()) return refuse(name, "must be a path");
      options.file = value;
      continue;
    }
    if (const auto done = set(values, name, value); !done) return fail(done.error());
    format_given |= name != "mdts";
  }
  options.mdts = values.mdts;

  // An image knows its own format: naming the file is enough.
  if (!options.file.empty() && !format_given && access(options.file.c_str(), F_OK) == 0) {
    const auto found = Medium::describe(options.file);
    if (!found) return fail(found.error());
    options.format = found->format.fields();
    options.block_count = found->block_count;
    return options;
  }
  options.format = values.format;
  if (values.format.data_size > 0) options.block_count = values.size / values.format.data_size;
  return options;
}

}  // namespace nvpi
