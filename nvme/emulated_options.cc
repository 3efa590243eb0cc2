// The text form of EmulatedNamespace::Options.
#include <unistd.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "nvme/emulated_namespace.h"
#include "nvme/number.h"

namespace nvpi {
namespace {

using Options = EmulatedNamespace::Options;

// What the keys fill in. Some only make sense together, so they are turned into options at the end.
struct Values {
  Options options{.format = {.metadata_size = 8, .type = PiType::type_1}};
  std::uint64_t size = 64ull << 20;
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

// An existing image knows the values of these itself.
constexpr Key format_keys[] = {
    {"size", 1ull << 60, "must be a size such as 64M", [](Values& v, std::uint64_t n) { v.size = n; }},
    {"ds", 1u << 20, "must be a block size such as 512 or 4096",
     [](Values& v, std::uint64_t n) { v.options.format.data_size = static_cast<std::uint32_t>(n); }},
    {"ms", 0xFFFF, "must be 0 to 65535",
     [](Values& v, std::uint64_t n) { v.options.format.metadata_size = static_cast<std::uint32_t>(n); }},
    {"mset", 1, "must be 0 (separate) or 1 (extended)",
     [](Values& v, std::uint64_t n) { v.options.format.layout = static_cast<MetadataLayout>(n); }},
    {"pi", 3, "must be 0 to 3",
     [](Values& v, std::uint64_t n) { v.options.format.type = static_cast<PiType>(n); }},
    {"pil", 1, "must be 0 (last) or 1 (first)",
     [](Values& v, std::uint64_t n) { v.options.format.position = static_cast<PiPosition>(n); }},
    {"pif", 64, "must be 16, 32 or 64 (or 0, 1 or 2)",
     [](Values& v, std::uint64_t n) { v.options.format.guard = guard_of(n); }},
    {"sts", 64, "must be 0 to 64",
     [](Values& v, std::uint64_t n) { v.options.format.storage_tag_size = static_cast<unsigned>(n); }},
    {"lbstm", ~0ull, "must be a mask",
     [](Values& v, std::uint64_t n) { v.options.format.storage_tag_mask = n; }},
};

// An option that is a number and is set to it as it is.
template <auto member>
void set_option(Values& values, std::uint64_t number) {
  auto& target = values.options.*member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(number);
}
template <auto member>
void set_service(Values& values, std::uint64_t number) {
  auto& target = values.options.service.*member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(number);
}

constexpr std::uint64_t longest_us = 60'000'000, largest_mbs = 1'000'000'000;
constexpr Key behaviour_keys[] = {
    {"mdts", 20, "must be 0 to 20", set_option<&Options::mdts>},
    {"dlfeat", 0x1F, "must be 0 to 31", set_option<&Options::dlfeat>},
    {"dulbe", 1, "must be 0 or 1", set_option<&Options::dulbe>},
    {"wp", 1, "must be 0 or 1", set_option<&Options::write_protected>},
    {"mssrl", 0xFFFF, "must be 0 to 65535", set_option<&Options::mssrl>},
    {"mcl", 0xFFFF'FFFF, "must be below 4Gi", set_option<&Options::mcl>},
    {"msrc", 0xFF, "must be 0 to 255", set_option<&Options::msrc>},
    {"zone_size", 1ull << 48, "must be a number of blocks", set_option<&Options::zone_size>},
    {"zone_capacity", 1ull << 48, "must be a number of blocks", set_option<&Options::zone_capacity>},
    {"read_us", longest_us, "must be at most a minute", set_service<&ServiceTime::read_us>},
    {"write_us", longest_us, "must be at most a minute", set_service<&ServiceTime::write_us>},
    {"read_mbs", largest_mbs, "must be at most 1000000000", set_service<&ServiceTime::read_mbs>},
    {"write_mbs", largest_mbs, "must be at most 1000000000", set_service<&ServiceTime::write_mbs>},
    {"seed", ~0ull, "must be a number", [](Values& v, std::uint64_t n) { v.options.faults.seed = n; }},
};

tl::unexpected<Error> refuse(std::string_view key, std::string_view rule) {
  return fail({.code = Errc::bad_option, .rule = rule, .detail = std::string(key)});
}

const Key* find_key(std::span<const Key> keys, std::string_view name) {
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
  return key == keys.end() ? nullptr : &*key;
}

Result<void> set_number(Values& values, const Key* key, std::string_view name, std::string_view value) {
  if (key == nullptr) {
    return refuse(name, "is not one of file, size, ds, ms, mset, pi, pil, pif, sts, lbstm, mdts, dlfeat, "
                        "dulbe, wp, mssrl, mcl, msrc, zone_size, zone_capacity, read_us, write_us, "
                        "read_mbs, write_mbs, fault, seed");
  }
  const auto number = parse_number(value);
  if (!number || *number > key->limit) return refuse(name, key->rule);
  key->set(values, *number);
  return {};
}

// The two keys that are no numbers; whether this was one of them.
Result<bool> set_text(Options& options, std::string_view name, std::string_view value) {
  if (name == "file") {
    if (value.empty()) return refuse(name, "must be a path");
    options.file = value;
    return true;
  }
  if (name != "fault") return false;
  auto list = Faults::parse(value);
  if (!list) return fail(list.error());
  options.faults.list = std::move(*list);
  return true;
}

}  // namespace

Result<Options> EmulatedNamespace::parse(std::string_view text) {
  Values values;
  Options& options = values.options;
  bool format_given = false;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(pair.size(), name.size() + 1));
    const auto is_text = set_text(options, name, value);
    if (!is_text) return fail(is_text.error());
    if (*is_text) continue;
    const Key* const of_format = find_key(format_keys, name);
    format_given |= of_format != nullptr;
    const Key* const key = of_format != nullptr ? of_format : find_key(behaviour_keys, name);
    if (const auto done = set_number(values, key, name, value); !done) return fail(done.error());
  }

  // Naming the file of an existing image is enough.
  if (!options.file.empty() && !format_given && access(options.file.c_str(), F_OK) == 0) {
    const auto found = Medium::describe(options.file);
    if (!found) return fail(found.error());
    options.format = found->format.fields();
    options.block_count = found->block_count;
    return options;
  }
  if (options.format.data_size > 0) options.block_count = values.size / options.format.data_size;
  return options;
}

}  // namespace nvpi
