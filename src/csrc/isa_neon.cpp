#define GAMMA_ISA_NAMESPACE gamma_kg_neon
#define GAMMA_VECTOR_BYTES 16
#define GAMMA_REGISTERS 32
#include "table.inl"

const gamma_kg::Kernels* gamma_kg_kernels_neon() { return GAMMA_ISA_NAMESPACE::table("neon"); }
