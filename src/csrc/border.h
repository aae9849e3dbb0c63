// Arrays as Python hands them over: dense, on the CPU, with their types checked by nanobind and their shapes here. The kernels
// that were chosen, and the memory they work in.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "units.h"

namespace gamma_kg {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Ids = Array<const int64_t>;

// Refuse an array of another shape than wanted; -1 means any length.
template <class A>
void want(const A& array, const char* name, std::initializer_list<int64_t> shape) {
    bool fits = array.ndim() == shape.size();
    size_t axis = 0;
    for (int64_t length : shape) {
        fits = fits && (length < 0 || int64_t(array.shape(axis)) == length);
        ++axis;
    }
    if (fits) return;
    auto shown = [](const std::vector<int64_t>& lengths) {
        std::string text = "(";
        for (int64_t length : lengths) text += (text.size() > 1 ? ", " : "") + (length < 0 ? "any" : std::to_string(length));
        return text + ")";
    };
    std::vector<int64_t> found;
    for (size_t i = 0; i < array.ndim(); ++i) found.push_back(int64_t(array.shape(i)));
    throw nb::value_error((std::string(name) + ": wanted " + shown(shape) + ", found " + shown(found)).c_str());
}

// The address of an array that may be missing.
template <class T>
T* address(const Array<T>& array) {
    return array.is_valid() ? array.data() : nullptr;
}

// The kernels of the instruction set that runs.
extern const Kernels* chosen;
template <class T>
const LayerKernels<T>& kernels();
template <>
inline const LayerKernels<float>& kernels<float>() {
    return chosen->f32;
}
template <>
inline const LayerKernels<double>& kernels<double>() {
    return chosen->f64;
}

// A workspace and its memory.
class Work {
public:
    Work(int64_t shared_bytes, int64_t bytes, int threads)
        : shared_(take(shared_bytes)), memory_(take(bytes * std::max(threads, 1))), bytes_(bytes) {}
    Workspace space() const { return {shared_.get(), memory_.get(), bytes_}; }

private:
    static constexpr std::align_val_t kLine{64};
    struct Free {
        void operator()(unsigned char* memory) const { ::operator delete(memory, kLine); }
    };
    using Piece = std::unique_ptr<unsigned char, Free>;
    static Piece take(int64_t bytes) {
        return Piece(static_cast<unsigned char*>(::operator new(size_t(std::max<int64_t>(bytes, 64)), kLine)));
    }

    Piece shared_, memory_;
    int64_t bytes_;
};

void define_graphs(nb::module_& module);
void define_propagation(nb::module_& module);
void define_layers(nb::module_& module);
void define_score(nb::module_& module);

}  // namespace gamma_kg
