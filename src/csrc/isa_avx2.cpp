#define GAMMA_ISA_NAMESPACE gamma_kg_avx2
#define GAMMA_VECTOR_BYTES 32
#define GAMMA_REGISTERS 16
#include "table.inl"

const gamma_kg::Kernels* gamma_kg_kernels_avx2() { return GAMMA_ISA_NAMESPACE::table("avx2"); }
