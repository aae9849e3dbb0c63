// W [x ; agg] + b for a few rows at a time, and what follows it in a layer: LayerNorm, ReLU, residual.
//
// Weights are packed into panels of two vectors of outputs, so that one panel column serves kRows rows from registers.
#pragma once
#include "simd.h"

namespace GAMMA_ISA_NAMESPACE {

// Accumulators (kRows x 2), one panel column (2) and one number to multiply with fill the registers.
constexpr int kRows = GAMMA_REGISTERS == 32 ? 12 : 6;

// Rows of a block: their aggregates and results (2 x 24 x 64 floats) stay in the first cache.
constexpr int64_t kBlock = 24;

template <class T>
constexpr int64_t panel_width() {
    return 2 * Lanes<Vec<T>, T>::count;
}

template <class T>
constexpr int64_t padded(int64_t columns) {
    return (columns + panel_width<T>() - 1) / panel_width<T>() * panel_width<T>();
}

// Halves are added to halves as long as they are vectors: no detour through memory.
template <class V, class T>
GAMMA_INLINE T sum_lanes(V v) {
    if constexpr (sizeof(V) == sizeof(T)) {
        return v;
#if defined(GAMMA_VECTOR_BYTES)
    } else if constexpr (sizeof(V) > 16) {
        typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
        Half low, high;
        __builtin_memcpy(&low, &v, sizeof(Half));
        __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(Half), sizeof(Half));
        return sum_lanes<Half, T>(low + high);
    } else if constexpr (sizeof(V) == 4 * sizeof(T)) {
        return (v[0] + v[2]) + (v[1] + v[3]);
    } else {
        return v[0] + v[1];
#endif
    }
}

// Panels [padded(outputs) / width][inputs][width] of `weight` [outputs, stride >= inputs]; what is past the outputs is zero.
template <class T>
static void pack(const T* weight, int64_t outputs, int64_t inputs, int64_t stride, T* packed) {
    constexpr int64_t width = panel_width<T>();
    for (int64_t first = 0; first < outputs; first += width)
        for (int64_t i = 0; i < inputs; ++i)
            for (int64_t j = 0; j < width; ++j, ++packed) *packed = first + j < outputs ? weight[(first + j) * stride + i] : T(0);
}

// The same for a map whose results go into a LayerNorm, which takes their mean away: weights without a mean over the outputs
// give results without one.
template <class T>
static void pack_centred(const T* weight, int64_t outputs, int64_t inputs, int64_t stride, T* packed) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    pack(weight, outputs, inputs, stride, packed);
    const int64_t panels = padded<T>(outputs) / panel_width<T>(), panel = inputs * panel_width<T>();
    for (int64_t i = 0; i < inputs; ++i, packed += panel_width<T>()) {
        V sum{};
        for (int64_t p = 0; p < panels; ++p) sum += L::load(packed + p * panel) + L::load(packed + p * panel + L::count);
        const V mean = L::all(sum_lanes<V, T>(sum) / T(outputs));
        for (int64_t p = 0; p < panels; ++p)
            for (T* at = packed + p * panel; at < packed + p * panel + panel_width<T>(); at += L::count)
                L::store(at, L::load(at) - mean);
    }
}

// acc += rows x panel over one of the two inputs.
template <int rows, class V, class T>
GAMMA_INLINE void multiply_panel(V (&acc)[rows][2], const T* const* row, const T* panel, int64_t inputs) {
    using L = Lanes<V, T>;
    const T* from[rows];
    GAMMA_UNROLL for (int r = 0; r < rows; ++r)
        from[r] = row[r];
    GAMMA_ROLLED for (int64_t i = 0; i < inputs; ++i, panel += 2 * L::count) {
        V first = L::load(panel), second = L::load(panel + L::count);
        GAMMA_KEEP(first);
        GAMMA_KEEP(second);
        GAMMA_UNROLL for (int r = 0; r < rows; ++r) {
            V value = L::all(from[r][i]);
            acc[r][0] += value * first;
            acc[r][1] += value * second;
        }
    }
}

// y[r] = bias + W_a a[r] + W_b b[r], with packed W_a and W_b; y rows are padded(outputs) apart, bias is padded. `rows` is a multiple of kRows (repeat
// the last row to fill up). A panel is used for all rows before the next one, so that it is read from the first cache.
template <class T>
static void linear_rows(const T* const* a, const T* const* b, int64_t rows, int64_t inputs_a, int64_t inputs_b, const T* packed_a,
                        const T* packed_b, const T* bias, int64_t outputs, T* y) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    constexpr int64_t width = panel_width<T>();
    const int64_t stride = padded<T>(outputs);
    for (int64_t first = 0; first < outputs; first += width, packed_a += inputs_a * width, packed_b += inputs_b * width) {
        for (int64_t row = 0; row < rows; row += kRows) {
            // The bias comes last: as a start it would take two of the registers that the panel column needs.
            V acc[kRows][2] = {};
            multiply_panel<kRows>(acc, a + row, packed_a, inputs_a);
            multiply_panel<kRows>(acc, b + row, packed_b, inputs_b);
            T* to = y + row * stride + first;
            GAMMA_UNROLL for (int r = 0; r < kRows; ++r) {
                L::store(to + r * stride, acc[r][0] + L::load(bias + first));
                L::store(to + r * stride + L::count, acc[r][1] + L::load(bias + first + L::count));
            }
        }
    }
}

template <class T>
struct Norm {
    const T* weight;
    const T* bias;
    T eps;
};

template <class T>
GAMMA_INLINE T sum_squares(const T* y, int64_t channels) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    const int64_t whole = channels / L::count * L::count;
    V sum{};
    for (int64_t c = 0; c < whole; c += L::count) sum += L::load(y + c) * L::load(y + c);
    T rest = sum_lanes<V, T>(sum);
    for (int64_t c = whole; c < channels; ++c) rest += y[c] * y[c];
    return rest;
}

// NaN stays NaN: a diverged model must not pass for a finite one.
template <class V>
GAMMA_INLINE V positive_part(V v) {
    return v < V{} ? V{} : v;
}

// out = x + ReLU(y * scale * weight + bias); x may be null (zero). With `keep` the values before the weight go there.
template <class T>
GAMMA_INLINE void finish_row(const T* y, const T* x, T scale, const Norm<T>& norm, int64_t channels, T* out, T* keep) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    const V scale_V = L::all(scale);
    int64_t c = 0;
    for (; c + L::count <= channels; c += L::count) {
        V v = L::load(y + c) * scale_V;
        if (keep) L::store(keep + c, v);
        v = positive_part(v * L::load(norm.weight + c) + L::load(norm.bias + c));
        L::store(out + c, x ? v + L::load(x + c) : v);
    }
    for (; c < channels; ++c) {
        T v = y[c] * scale;
        if (keep) keep[c] = v;
        v = positive_part(v * norm.weight[c] + norm.bias[c]);
        out[c] = x ? v + x[c] : v;
    }
}

// LayerNorm, ReLU and residual of up to kBlock rows without a mean (see pack_centred); y rows are `stride` apart. Step by step
// for all rows: within a row each step waits for the one before, rows wait for nobody. `width` is the number of channels where
// the compiler knows it, else 0.
template <int width, class T>
static void normalise_rows(const T* y, int64_t stride, const T* const* x, const Norm<T>& norm, int64_t any_channels, int64_t rows,
                           T* const* out, T* const* keep, T* scale) {
    const int64_t channels = width ? width : any_channels;
    for (int64_t i = 0; i < rows; ++i) scale[i] = sum_squares(y + i * stride, channels) / T(channels);
    for (int64_t i = 0; i < rows; ++i) scale[i] = T(1) / square_root(scale[i] + norm.eps);
    for (int64_t i = 0; i < rows; ++i)
        finish_row(y + i * stride, x[i], scale[i], norm, channels, out[i], keep ? keep[i] : nullptr);
}

}  // namespace GAMMA_ISA_NAMESPACE
