// Backward through the update of a layer: ReLU, LayerNorm, linear map and residual in one pass over the rows.
#pragma once
#include "linear.inl"
#include "memory.inl"
#include "propagate.inl"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::UpdateBackwardArgs;

// Backward through ReLU and LayerNorm of one row: the gradient of the linear result; `sums` as in UpdateBackwardArgs.
template <class T>
static void normalise_row_backward(const T* gradient, const T* normalised, T scale, const Norm<T>& norm, int64_t channels,
                                   T* linear_gradient, T* sums) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    const int64_t whole = channels / L::count * L::count;
    V sum{}, product{};
    T rest_sum = 0, rest_product = 0;
    for (int64_t c = 0; c < whole; c += L::count) {
        const V n = L::load(normalised + c), w = L::load(norm.weight + c), pre = n * w + L::load(norm.bias + c);
        const V g = pre > V{} ? L::load(gradient + c) : V{};
        L::store(sums + c, L::load(sums + c) + g * n);
        L::store(sums + channels + c, L::load(sums + channels + c) + g);
        const V gw = g * w;
        sum += gw;
        product += gw * n;
        L::store(linear_gradient + c, gw);
    }
    for (int64_t c = whole; c < channels; ++c) {
        const T n = normalised[c], g = n * norm.weight[c] + norm.bias[c] > 0 ? gradient[c] : T(0);
        sums[c] += g * n;
        sums[channels + c] += g;
        linear_gradient[c] = g * norm.weight[c];
        rest_sum += linear_gradient[c];
        rest_product += linear_gradient[c] * n;
    }
    const T mean = (sum_lanes<V, T>(sum) + rest_sum) / T(channels);
    const T slope = (sum_lanes<V, T>(product) + rest_product) / T(channels);
    const V mean_V = L::all(mean), slope_V = L::all(slope), scale_V = L::all(scale);
    for (int64_t c = 0; c < whole; c += L::count) {
        const V g = (L::load(linear_gradient + c) - mean_V - L::load(normalised + c) * slope_V) * scale_V;
        L::store(linear_gradient + c, g);
        L::store(sums + 2 * channels + c, L::load(sums + 2 * channels + c) + g);
    }
    for (int64_t c = whole; c < channels; ++c) {
        linear_gradient[c] = (linear_gradient[c] - mean - normalised[c] * slope) * scale;
        sums[2 * channels + c] += linear_gradient[c];
    }
}

template <class T>
static int64_t update_backward_bytes(const UpdateBackwardArgs<T>& args) {
    Memory memory{0};
    memory.take<T>(kBlock * padded<T>(2 * args.channels));
    return int64_t(memory.at);
}

// Rows first .. last; the gradients of norm and bias are added to `sums`.
template <class T>
static void update_backward_part(const UpdateBackwardArgs<T>& args, int64_t first, int64_t last, T* sums, T* y) {
    const int64_t channels = args.channels, width = padded<T>(2 * channels);
    const Norm<T> norm{args.norm_weight, args.norm_bias, T(0)};
    for (int64_t begin = first; begin < last; begin += kBlock) {
        const int64_t count = smaller(kBlock, last - begin), filled = (count + kRows - 1) / kRows * kRows;
        const T* rows[kBlock];
        for (int64_t i = 0; i < filled; ++i) rows[i] = args.linear_gradient + (begin + smaller(i, count - 1)) * channels;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = (begin + i) * channels;
            normalise_row_backward(args.gradient + at, args.normalised + at, args.scale[begin + i], norm, channels,
                                   args.linear_gradient + at, sums);
        }
        linear_rows(rows, rows, filled, channels, 0, args.packed, args.packed, args.zeros, 2 * channels, y);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = (begin + i) * channels;
            for (int64_t c = 0; c < channels; ++c) {
                args.x_gradient[at + c] = args.gradient[at + c] + y[i * width + c];
                args.agg_gradient[at + c] = y[i * width + channels + c];
            }
        }
    }
}

template <class T>
static void update_backward(const UpdateBackwardArgs<T>& args) {
#pragma omp parallel num_threads(args.threads) if (args.threads > 1 && args.parts > 1)
    {
        const int thread = thread_number();
        Memory memory = memory_of(args.work, thread);
        T* const y = memory.take<T>(kBlock * padded<T>(2 * args.channels));
        for (int64_t part; (part = take_unit(*args.units, thread)) >= 0;)
            update_backward_part(args, args.rows * part / args.parts, args.rows * (part + 1) / args.parts,
                                 args.sums + part * 3 * args.channels, y);
    }
}

template <class T>
static void pack_transposed(const T* weight, int64_t channels, T* packed) {
    constexpr int64_t panel = panel_width<T>();
    for (int64_t first = 0; first < 2 * channels; first += panel)
        for (int64_t i = 0; i < channels; ++i)
            for (int64_t j = 0; j < panel; ++j, ++packed)
                *packed = first + j < 2 * channels ? weight[i * 2 * channels + first + j] : T(0);
}

}  // namespace GAMMA_ISA_NAMESPACE
