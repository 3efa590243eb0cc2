// Errors in words: what happened, with the values, and what to do next.
#pragma once

#include <string>
#include <string_view>

#include "cli/exit_status.h"
#include "nvme/error.h"
#include "nvme/queue.h"

namespace nvpi::cli {

ExitStatus exit_status_of(const Error& error);
std::string describe(const Error& error);
std::string describe(const PiMismatch& mismatch, const PiFormat& format, std::uint64_t data_stride);
std::string describe(const Fallback& fallback);
std::string describe(const PiFormat& format);
std::string describe_status(Status status);  // "End-to-end Guard Check Error (0x282)"

std::string_view name_of(PiTag tag);           // "guard", "application tag", ...
std::string_view name_of(GuardType guard);     // "16b"
std::string_view kind_of(const Error& error);  // "usage", "system", "nvme" or "pi", for JSON

// The tuple as bytes with its fields apart: "8f6d abcd 23456789".
std::string tuple_text(const PiTuple& tuple, const PiFormat& format);
// A tag at its full width: "0x8f6d".
std::string tag_text(PiTag tag, std::uint64_t value, const PiFormat& format);

}  // namespace nvpi::cli
