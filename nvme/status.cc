#include "nvme/status.h"

#include <algorithm>
#include <iterator>

namespace nvpi {
namespace {

struct Name {
  std::uint16_t code;
  std::string_view name;
};

// NVM Express Base Specification 2.0, figures 94-98; NVM Command Set Specification 1.0, figures 15-18;
// Zoned Namespace Command Set Specification 1.1, figure 18. Sorted by code.
constexpr Name names[] = {
    {0x000, "Successful Completion"},
    {0x001, "Invalid Command Opcode"},
    {0x002, "Invalid Field in Command"},
    {0x003, "Command ID Conflict"},
    {0x004, "Data Transfer Error"},
    {0x005, "Commands Aborted due to Power Loss Notification"},
    {0x006, "Internal Error"},
    {0x007, "Command Abort Requested"},
    {0x008, "Command Aborted due to SQ Deletion"},
    {0x009, "Command Aborted due to Failed Fused Command"},
    {0x00A, "Command Aborted due to Missing Fused Command"},
    {0x00B, "Invalid Namespace or Format"},
    {0x00C, "Command Sequence Error"},
    {0x00D, "Invalid SGL Segment Descriptor"},
    {0x00E, "Invalid Number of SGL Descriptors"},
    {0x00F, "Data SGL Length Invalid"},
    {0x010, "Metadata SGL Length Invalid"},
    {0x011, "SGL Descriptor Type Invalid"},
    {0x012, "Invalid Use of Controller Memory Buffer"},
    {0x013, "PRP Offset Invalid"},
    {0x014, "Atomic Write Unit Exceeded"},
    {0x015, "Operation Denied"},
    {0x016, "SGL Offset Invalid"},
    {0x01A, "Keep Alive Timeout Invalid"},
    {0x01C, "Sanitize Failed"},
    {0x01D, "Sanitize In Progress"},
    {0x01E, "SGL Data Block Granularity Invalid"},
    {0x020, "Namespace is Write Protected"},
    {0x021, "Command Interrupted"},
    {0x022, "Transient Transport Error"},
    {0x080, "LBA Out of Range"},
    {0x081, "Capacity Exceeded"},
    {0x082, "Namespace Not Ready"},
    {0x083, "Reservation Conflict"},
    {0x084, "Format In Progress"},
    {0x10A, "Invalid Format"},
    {0x180, "Conflicting Attributes"},
    {0x181, "Invalid Protection Information"},
    {0x182, "Attempted Write to Read Only Range"},
    {0x183, "Command Size Limit Exceeded"},
    {0x185, "Incompatible Namespace or Format"},
    {0x186, "Fast Copy Not Possible"},
    {0x187, "Overlapping I/O Range"},
    {0x188, "Namespace Not Reachable"},
    {0x189, "Insufficient Resources"},
    {0x1B8, "Zone Boundary Error"},
    {0x1B9, "Zone Is Full"},
    {0x1BA, "Zone Is Read Only"},
    {0x1BB, "Zone Is Offline"},
    {0x1BC, "Zone Invalid Write"},
    {0x1BD, "Too Many Active Zones"},
    {0x1BE, "Too Many Open Zones"},
    {0x1BF, "Invalid Zone State Transition"},
    {0x280, "Write Fault"},
    {0x281, "Unrecovered Read Error"},
    {0x282, "End-to-end Guard Check Error"},
    {0x283, "End-to-end Application Tag Check Error"},
    {0x284, "End-to-end Reference Tag Check Error"},
    {0x285, "Compare Failure"},
    {0x286, "Access Denied"},
    {0x287, "Deallocated or Unwritten Logical Block"},
    {0x288, "End-to-end Storage Tag Check Error"},
    {0x300, "Internal Path Error"},
    {0x301, "Asymmetric Access Persistent Loss"},
    {0x302, "Asymmetric Access Inaccessible"},
    {0x303, "Asymmetric Access Transition"},
    {0x360, "Controller Pathing Error"},
    {0x370, "Host Pathing Error"},
    {0x371, "Command Aborted By Host"},
};
static_assert(std::is_sorted(std::begin(names), std::end(names),
                             [](const Name& a, const Name& b) { return a.code < b.code; }));

}  // namespace

std::string_view Status::name() const noexcept {
  const auto* found = std::lower_bound(std::begin(names), std::end(names), code(),
                                       [](const Name& a, std::uint16_t b) { return a.code < b; });
  return found != std::end(names) && found->code == code() ? found->name : std::string_view{};
}

}  // namespace nvpi
