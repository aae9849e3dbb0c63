// The table of one instruction set: everything that is compiled once per set, gathered.
#include "neighbourhoods.inl"
#include "score.inl"
#include "update_backward.inl"

namespace GAMMA_ISA_NAMESPACE {

template <class T>
static gamma_kg::LayerKernels<T> kernels_of() {
    return {propagate<T>,           propagate_backward<T>,    layer<T>,       neighbourhoods<T>,    pack_layer<T>,
            pack_transposed<T>,     update_backward<T>,       score<T>,       padded_width<T>,      layer_bytes<T>,
            neighbourhood_bytes<T>, update_backward_bytes<T>, score_bytes<T>, score_shared_bytes<T>};
}

static const gamma_kg::Kernels* table(const char* name) {
    static const gamma_kg::Kernels kernels = {name, kernels_of<float>(), kernels_of<double>()};
    return &kernels;
}

}  // namespace GAMMA_ISA_NAMESPACE
