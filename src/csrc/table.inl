// The table of one instruction set: everything that is compiled once per set, gathered.
#include "head.inl"

namespace GAMMA_ISA_NAMESPACE {

static const gamma_kg::Kernels* table(const char* name) {
    static const gamma_kg::Kernels kernels = {
        name,
        {propagate<float>, propagate_backward<float>, layer<float>, pack_layer<float>, pack_transposed<float>,
         update_backward<float>, score<float>, padded_width<float>},
        {propagate<double>, propagate_backward<double>, layer<double>, pack_layer<double>, pack_transposed<double>,
         update_backward<double>, score<double>, padded_width<double>},
    };
    return &kernels;
}

}  // namespace GAMMA_ISA_NAMESPACE
