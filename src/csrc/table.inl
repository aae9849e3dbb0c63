// The table of one instruction set: everything that is compiled once per set, gathered.
#include "propagate.inl"

namespace GAMMA_ISA_NAMESPACE {

static const gamma_kg::Kernels* table(const char* name) {
    static const gamma_kg::Kernels kernels = {
        name, propagate<float>, propagate<double>, propagate_backward<float>, propagate_backward<double>,
    };
    return &kernels;
}

}  // namespace GAMMA_ISA_NAMESPACE
