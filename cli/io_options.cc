#include "cli/io_options.h"

namespace nvpi::cli {

void add_io_options(Command& command, IoOptions& io) {
  const bool writes = io.opcode == Opcode::write;
  command.device(io.common)
      .number<std::uint64_t>("-s,--start-block", io.start_block, "first LBA (0)")
      .option("-c,--block-count", "N", "blocks, 0's based: 7 means 8 blocks",
              [&io](const std::string& text) {
                io.block_count = number_from("--block-count", text, 0xFFFF) + 1;
              })
      .number<std::uint64_t>("--blocks", io.block_count, "blocks, counted from 1")
      .excludes("--blocks", "--block-count")
      .number<std::uint64_t>("-z,--data-size", io.data_size, "bytes of data")
      .file("-d,--data", io.data_file,
            writes ? "file to write, - for standard input (-)"
                   : "file to read into, - for standard output (-)")
      .file("-M,--metadata", io.metadata_file,
            writes ? "file with the metadata; the PI in it is sent as it is" : "file for the metadata")
      .choice<PiOwner>("--pi", io.pi, "who makes and checks the PI: this driver, the device, nobody",
                       {{"host", PiOwner::host}, {"device", PiOwner::device}, {"none", PiOwner::caller}})
      .number<std::uint8_t>("-p,--prinfo", io.prinfo,
                            "PRACT 8 + checks by the device: guard 4, app 2, ref 1", 0xF)
      .number<std::uint64_t>("-r,--ref-tag", io.ref_tag, "initial reference tag (low bits of the LBA)")
      .number<std::uint16_t>("-a,--app-tag", io.app_tag,
                             writes ? "application tag (0)" : "expected application tag")
      .number<std::uint16_t>("-m,--app-tag-mask", io.app_tag_mask,
                             "bits of the application tag to compare (0xffff)")
      .number<std::uint64_t>("-g,--storage-tag", io.storage_tag, "storage tag")
      .flag("-C,--storage-tag-check", io.storage_tag_check, "let the device check the storage tag")
      .flag("-f,--force-unit-access", io.force_unit_access, "go to the medium, not to a cache")
      .flag("-l,--limited-retry", io.limited_retry, "limit the device's own retries");
  if (writes) {
    command.flag("--allow-unprotected", io.allow_unprotected,
                 "permit application tag 0xffff, which switches checking off");
  }
}

}  // namespace nvpi::cli
