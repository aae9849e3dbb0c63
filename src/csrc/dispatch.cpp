// Which compiled instruction set this machine can run. GAMMA_HAVE_* say what CMake compiled; every flag that it gave the
// compiler for a set is asked for here.
#include <cstring>
#include <initializer_list>

#include "kernels.h"

const gamma_kg::Kernels* gamma_kg_kernels_plain();
#if defined(GAMMA_HAVE_AVX2)
const gamma_kg::Kernels* gamma_kg_kernels_avx2();
#endif
#if defined(GAMMA_HAVE_AVX512)
const gamma_kg::Kernels* gamma_kg_kernels_avx512();
#endif
#if defined(GAMMA_HAVE_NEON)
const gamma_kg::Kernels* gamma_kg_kernels_neon();
#endif

namespace gamma_kg {

const Kernels* kernels_named(const char* name) {
#if defined(GAMMA_HAVE_AVX512)
    if (!std::strcmp(name, "avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma"))
        return gamma_kg_kernels_avx512();
#endif
#if defined(GAMMA_HAVE_AVX2)
    if (!std::strcmp(name, "avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return gamma_kg_kernels_avx2();
#endif
#if defined(GAMMA_HAVE_NEON)
    if (!std::strcmp(name, "neon")) return gamma_kg_kernels_neon();
#endif
    if (!std::strcmp(name, "plain")) return gamma_kg_kernels_plain();
    return nullptr;
}

const Kernels* best_kernels() {
    for (const char* name : {"avx512", "avx2", "neon"})
        if (const Kernels* kernels = kernels_named(name)) return kernels;
    return kernels_named("plain");
}

}  // namespace gamma_kg
