// Attention over branches and the score (MODEL.md §6) of a block of entities while it is in cache.
#pragma once
#include <cstdlib>

#include "kernels.h"
#include "layer.inl"
#include "linear.inl"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::ScoreArgs;

template <class T>
struct Buffer {
    T* data;
    explicit Buffer(int64_t count) : data(static_cast<T*>(std::calloc(count + 1, sizeof(T)))) {}
    ~Buffer() { std::free(data); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
};

template <class T>
GAMMA_INLINE T dot(const T* a, const T* b, int64_t count) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    V sum{};
    int64_t i = 0;
    for (; i + L::count <= count; i += L::count) sum += L::load(a + i) * L::load(b + i);
    T total = sum_lanes<V, T>(sum);
    for (; i < count; ++i) total += a[i] * b[i];
    return total;
}

// Weights that all queries share, packed.
template <class T>
struct PackedHead {
    Buffer<T> keys, hidden;
    explicit PackedHead(const ScoreArgs<T>& args)
        : keys(args.key_weight ? args.branches * args.channels * padded<T>(args.attention) : 0),
          hidden(args.branches * args.channels * padded<T>(args.hidden)) {
        const int64_t channels = args.channels, inputs = args.branches * channels;
        for (int64_t k = 0; args.key_weight && k < args.branches; ++k)
            pack(args.key_weight + k * args.attention * channels, args.attention, channels, channels,
                 keys.data + k * channels * padded<T>(args.attention));
        // The branches side by side: one map of [weight_1 z_1 ; weight_2 z_2 ; ...].
        Buffer<T> side_by_side(args.hidden * inputs);
        for (int64_t k = 0; k < args.branches; ++k)
            for (int64_t h = 0; h < args.hidden; ++h)
                for (int64_t c = 0; c < channels; ++c)
                    side_by_side.data[h * inputs + k * channels + c] = args.hidden_weight[(k * args.hidden + h) * channels + c];
        pack(side_by_side.data, args.hidden, inputs, inputs, hidden.data);
    }
};

// Branch weights of `count` rows, alpha [count, K]: from the cosine of each branch's key with the context.
template <class T>
static void attend(const ScoreArgs<T>& args, const PackedHead<T>& packed, int64_t b, const T* const* rows, int64_t filled,
                   int64_t count, const T* key_bias, T* y, T* alpha) {
    const int64_t branches = args.branches, attention = args.attention, width = padded<T>(attention);
    const T* context = args.context + b * attention;
    for (int64_t k = 0; k < branches; ++k) {
        const T* keys = packed.keys.data + k * args.channels * width;
        linear_rows(rows + k * kBlock, rows + k * kBlock, filled, args.channels, 0, keys, keys, key_bias + k * width, attention, y);
        for (int64_t i = 0; i < count; ++i) {
            const T* key = y + i * width;
            const T length = square_root(dot(key, key, attention));
            alpha[i * branches + k] = dot(key, context, attention) / larger(length, T(1e-12)) / args.temperature;
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        T* a = alpha + i * branches;
        T top = a[0], total = 0;
        for (int64_t k = 1; k < branches; ++k) top = larger(top, a[k]);
        for (int64_t k = 0; k < branches; ++k) total += a[k] = exponential(a[k] - top);
        for (int64_t k = 0; k < branches; ++k) a[k] = (1 - args.mix) * a[k] / total + args.mix / T(branches);
    }
}

template <class T>
static void score_part(const ScoreArgs<T>& args, const PackedHead<T>& packed, int64_t b, int64_t first, int64_t last) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    const int64_t branches = args.branches, channels = args.channels, hidden = args.hidden, inputs = branches * channels;
    const int64_t key_width = padded<T>(args.attention), width = padded<T>(hidden);
    Buffer<T> y(kBlock * larger(width, key_width)), scaled(kBlock * inputs), alpha(kBlock * branches);
    Buffer<T> key_bias(branches * key_width), query_packed(branches * width), bias(width), out_weight(width);
    Buffer<const T*> rows(branches * kBlock);
    for (int64_t k = 0; args.key_weight && k < branches; ++k)
        for (int64_t a = 0; a < args.attention; ++a)
            key_bias.data[k * key_width + a] = args.key_query[(b * branches + k) * args.attention + a];
    // What the query gives to the hidden layer comes as further inputs, whose values are the branch weights.
    Buffer<T> by_output(hidden * branches);
    for (int64_t h = 0; h < hidden; ++h) {
        bias.data[h] = args.hidden_bias[h];
        out_weight.data[h] = args.out_weight[h];
        for (int64_t k = 0; k < branches; ++k)
            by_output.data[h * branches + k] = args.hidden_query[(b * branches + k) * hidden + h];
    }
    pack(by_output.data, hidden, branches, branches, query_packed.data);

    for (int64_t begin = first; begin < last; begin += kBlock) {
        const int64_t count = smaller(kBlock, last - begin), filled = (count + kRows - 1) / kRows * kRows;
        for (int64_t k = 0; k < branches; ++k)
            for (int64_t i = 0; i < filled; ++i)
                rows.data[k * kBlock + i] = args.states[k] + b * args.query_stride + (begin + smaller(i, count - 1)) * channels;
        if (args.key_weight) {
            attend(args, packed, b, rows.data, filled, count, key_bias.data, y.data, alpha.data);
        } else {
            for (int64_t i = 0; i < count * branches; ++i) alpha.data[i] = args.weight[b * branches + i % branches];
        }
        const T *row[kBlock], *weights[kBlock];
        for (int64_t i = 0; i < filled; ++i) {
            row[i] = scaled.data + smaller(i, count - 1) * inputs;
            weights[i] = alpha.data + smaller(i, count - 1) * branches;
        }
        for (int64_t i = 0; i < count; ++i)
            for (int64_t k = 0; k < branches; ++k) {
                const T a = weights[i][k];
                const T* from = rows.data[k * kBlock + i];
                T* to = scaled.data + i * inputs + k * channels;
                for (int64_t c = 0; c < channels; ++c) to[c] = a * from[c];
            }
        linear_rows(row, weights, filled, inputs, branches, packed.hidden.data, query_packed.data, bias.data, hidden, y.data);
        for (int64_t i = 0; i < count; ++i) {
            V sum{};
            for (int64_t h = 0; h < width; h += L::count)  // past `hidden` both factors are zero
                sum += positive_part(L::load(y.data + i * width + h)) * L::load(out_weight.data + h);
            const int64_t at = b * args.nodes + begin + i;
            args.score[at] = sum_lanes<V, T>(sum) + args.out_bias;
            for (int64_t k = 0; k < branches; ++k) args.branch_weight[at * branches + k] = alpha.data[i * branches + k];
        }
    }
}

template <class T>
static void score(const ScoreArgs<T>& args) {
    const PackedHead<T> packed(args);
    constexpr int64_t rows = 40 * kBlock;
    const int64_t parts = (args.nodes + rows - 1) / rows, units = args.queries * parts;
#pragma omp parallel for schedule(dynamic, 1) num_threads(args.threads) if (args.threads > 1 && units > 1)
    for (int64_t unit = 0; unit < units; ++unit) {
        const int64_t first = unit % parts * rows;
        score_part(args, packed, unit / parts, first, smaller(args.nodes, first + rows));
    }
}

}  // namespace GAMMA_ISA_NAMESPACE
