// What the CPU at hand can do, as far as the guard kernels need to know.
//
// Compiled without any instruction set option, so that asking is safe on every CPU.
#pragma once

namespace nvpi {

bool cpu_has_pclmul() noexcept;      // PCLMULQDQ and SSE4.1
bool cpu_has_vpclmul256() noexcept;  // VPCLMULQDQ and AVX2
bool cpu_has_vpclmul512() noexcept;  // VPCLMULQDQ and AVX-512 F, BW and VL

}  // namespace nvpi
