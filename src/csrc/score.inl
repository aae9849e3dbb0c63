// Attention over branches and the score (docs/model.md §6) of a block of entities while it is in cache.
#pragma once
#include "linear.inl"
#include "memory.inl"
#include "propagate.inl"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::Candidates;
using gamma_kg::ScoreArgs;

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
struct PackedScore {
    T *keys, *hidden, *side_by_side;

    static PackedScore in(Memory& memory, const ScoreArgs<T>& args) {
        const int64_t inputs = args.branches * args.channels;
        return {memory.take<T>(args.key_weight ? inputs * padded<T>(args.attention) : 0),
                memory.take<T>(inputs * padded<T>(args.hidden)), memory.take<T>(inputs * args.hidden)};
    }

    void fill(const ScoreArgs<T>& args) const {
        const int64_t channels = args.channels, inputs = args.branches * channels;
        for (int64_t k = 0; args.key_weight && k < args.branches; ++k)
            pack(args.key_weight + k * args.attention * channels, args.attention, channels, channels,
                 keys + k * channels * padded<T>(args.attention));
        // The branches side by side: one map of [weight_1 z_1 ; weight_2 z_2 ; ...].
        for (int64_t k = 0; k < args.branches; ++k)
            for (int64_t h = 0; h < args.hidden; ++h)
                for (int64_t c = 0; c < channels; ++c)
                    side_by_side[h * inputs + k * channels + c] = args.hidden_weight[(k * args.hidden + h) * channels + c];
        pack(side_by_side, args.hidden, inputs, inputs, hidden);
    }
};

// What a thread works with: results of a linear map, weighted states and branch weights of a block, and what the query gives.
template <class T>
struct ScoreScratch {
    T *y, *scaled, *alpha, *key_bias, *by_output, *query_packed, *bias, *out_weight;
    const T** rows;

    static ScoreScratch in(Memory& memory, const ScoreArgs<T>& args) {
        const int64_t branches = args.branches, key_width = padded<T>(args.attention), width = padded<T>(args.hidden);
        ScoreScratch own;
        own.y = memory.take<T>(kBlock * larger(width, key_width));
        own.scaled = memory.take<T>(kBlock * branches * args.channels);
        own.alpha = memory.take<T>(kBlock * branches);
        own.key_bias = memory.take<T>(branches * key_width);
        own.by_output = memory.take<T>(args.hidden * branches);
        own.query_packed = memory.take<T>(branches * width);
        own.bias = memory.take<T>(width);
        own.out_weight = memory.take<T>(width);
        own.rows = memory.take<const T*>(branches * kBlock);
        return own;
    }
};

// Branch weights of `count` rows, alpha [count, K]: from the cosine of each branch's key with the context.
template <class T>
static void attend(const ScoreArgs<T>& args, const PackedScore<T>& packed, int64_t b, const T* const* rows, int64_t filled,
                   int64_t count, const T* key_bias, T* y, T* alpha) {
    const int64_t branches = args.branches, attention = args.attention, width = padded<T>(attention);
    const T* context = args.context + b * attention;
    for (int64_t k = 0; k < branches; ++k) {
        const T* keys = packed.keys + k * args.channels * width;
        linear_rows(rows + k * kBlock, rows + k * kBlock, filled, args.channels, 0, keys, keys, key_bias + k * width, attention,
                    y);
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
static void score_part(const ScoreArgs<T>& args, const PackedScore<T>& packed, const Candidates& part,
                       const ScoreScratch<T>& own) {
    using V = Vec<T>;
    using L = Lanes<V, T>;
    const int64_t branches = args.branches, channels = args.channels, hidden = args.hidden, inputs = branches * channels;
    const int64_t key_width = padded<T>(args.attention), width = padded<T>(hidden), b = part.query;
    // What is past the outputs must be zero.
    clear(own.key_bias, branches * key_width);
    clear(own.bias, width);
    clear(own.out_weight, width);
    for (int64_t k = 0; args.key_weight && k < branches; ++k)
        for (int64_t a = 0; a < args.attention; ++a)
            own.key_bias[k * key_width + a] = args.key_query[(b * branches + k) * args.attention + a];
    // What the query gives to the hidden layer comes as further inputs, whose values are the branch weights.
    for (int64_t h = 0; h < hidden; ++h) {
        own.bias[h] = args.hidden_bias[h];
        own.out_weight[h] = args.out_weight[h];
        for (int64_t k = 0; k < branches; ++k)
            own.by_output[h * branches + k] = args.hidden_query[(b * branches + k) * hidden + h];
    }
    pack(own.by_output, hidden, branches, branches, own.query_packed);

    for (int64_t begin = part.first; begin < part.last; begin += kBlock) {
        const int64_t count = smaller(kBlock, part.last - begin), filled = (count + kRows - 1) / kRows * kRows;
        for (int64_t k = 0; k < branches; ++k)
            for (int64_t i = 0; i < filled; ++i)
                own.rows[k * kBlock + i] = args.states[k] + args.state_begin[b] + (begin + smaller(i, count - 1)) * channels;
        if (args.key_weight) {
            attend(args, packed, b, own.rows, filled, count, own.key_bias, own.y, own.alpha);
        } else {
            for (int64_t i = 0; i < count * branches; ++i) own.alpha[i] = args.weight[b * branches + i % branches];
        }
        const T *row[kBlock], *weights[kBlock];
        for (int64_t i = 0; i < filled; ++i) {
            row[i] = own.scaled + smaller(i, count - 1) * inputs;
            weights[i] = own.alpha + smaller(i, count - 1) * branches;
        }
        for (int64_t i = 0; i < count; ++i)
            for (int64_t k = 0; k < branches; ++k) {
                const T a = weights[i][k];
                const T* from = own.rows[k * kBlock + i];
                T* to = own.scaled + i * inputs + k * channels;
                for (int64_t c = 0; c < channels; ++c) to[c] = a * from[c];
            }
        linear_rows(row, weights, filled, inputs, branches, packed.hidden, own.query_packed, own.bias, hidden, own.y);
        for (int64_t i = 0; i < count; ++i) {
            V sum{};
            for (int64_t h = 0; h < width; h += L::count)  // past `hidden` both factors are zero
                sum += positive_part(L::load(own.y + i * width + h)) * L::load(own.out_weight + h);
            const int64_t at = args.result_begin[b] + begin + i;
            args.score[at] = sum_lanes<V, T>(sum) + args.out_bias;
            for (int64_t k = 0; k < branches; ++k) args.branch_weight[at * branches + k] = own.alpha[i * branches + k];
        }
    }
}

template <class T>
static int64_t score_bytes(const ScoreArgs<T>& args) {
    Memory memory{0};
    ScoreScratch<T>::in(memory, args);
    return int64_t(memory.at);
}

template <class T>
static int64_t score_shared_bytes(const ScoreArgs<T>& args) {
    Memory memory{0};
    PackedScore<T>::in(memory, args);
    return int64_t(memory.at);
}

template <class T>
static void score(const ScoreArgs<T>& args) {
    Memory shared{reinterpret_cast<uintptr_t>(args.work.shared)};
    const PackedScore<T> packed = PackedScore<T>::in(shared, args);
    packed.fill(args);
#pragma omp parallel num_threads(args.threads) if (args.threads > 1)
    {
        const int thread = thread_number();
        Memory memory = memory_of(args.work, thread);
        const ScoreScratch<T> own = ScoreScratch<T>::in(memory, args);
        for (int64_t unit; (unit = take_unit(*args.units, thread)) >= 0;) score_part(args, packed, args.candidates[unit], own);
    }
}

}  // namespace GAMMA_ISA_NAMESPACE
