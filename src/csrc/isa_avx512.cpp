#define GAMMA_ISA_NAMESPACE gamma_kg_avx512
#define GAMMA_VECTOR_BYTES 64
#define GAMMA_REGISTERS 32
#include "table.inl"

const gamma_kg::Kernels* gamma_kg_kernels_avx512() { return GAMMA_ISA_NAMESPACE::table("avx512"); }
