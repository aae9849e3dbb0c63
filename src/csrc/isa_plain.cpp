#define GAMMA_ISA_NAMESPACE gamma_kg_plain
#define GAMMA_VECTOR_BYTES 16
#define GAMMA_REGISTERS 16
#include "table.inl"

const gamma_kg::Kernels* gamma_kg_kernels_plain() { return GAMMA_ISA_NAMESPACE::table("plain"); }
