// What the options of a read or write mean on the namespace at hand, before anything is sent. What cannot be
// done is refused with a message that names the value and what to do.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "cli/files.h"
#include "cli/io_options.h"
#include "nvme/namespace.h"

namespace nvpi::cli {

struct IoPlan {
  Io io;                      // without memory
  std::uint64_t data_stride;  // bytes a block in the data file
  bool interleaved = false;   // ... of which the last are its metadata
};

// The inputs are those of a write, else null.
tl::expected<IoPlan, std::string> make_plan(const IoOptions& options, const Namespace& ns,
                                            const InputFile* data, const InputFile* metadata);

}  // namespace nvpi::cli
