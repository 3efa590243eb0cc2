// Guards with PCLMULQDQ on 128-bit registers. Compiled with -msse4.1 -mpclmul.
#include "pi/cpu_features.h"
#include "pi/guard_pclmul.h"

namespace nvpi {

constinit const GuardKernel guard_pclmul128 = {"pclmul", cpu_has_pclmul, functions_for<Xmm>};

}  // namespace nvpi
