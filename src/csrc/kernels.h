// The table of kernels that each instruction set fills in, and the arguments they take.
#pragma once

#include "graph.h"

namespace gamma_kg {

// Who does which unit of work: see units.h, which kernels must not include (simd.h says why).
class Units;
// The next unit for a thread; -1 when all are taken.
int64_t take_unit(Units& units, int thread);

// out[b, u] = sum over edges (u, r, v) of f_r(x[b, v]).  Arrays are dense: x, out [B, N, D], relation [B or 1, R, D].
template <class T>
struct PropagateArgs {
    Graph graph;
    Algebra algebra;
    int64_t queries, channels;
    const T* x;
    const T* relation;
    int64_t relation_stride;  // R * D, or 0 when all queries share one table
    T* out;
    int64_t parts;    // per query
    const Cut* cuts;  // [parts + 1]
    T* carry;         // [B, parts, D]: what a part adds to a node that an earlier part began
    int threads;
    Units* units;  // B * parts
    bool accumulate = false;  // add to what `out` holds
};

// Gradients of the above for x and relation, in one pass over the edges: with every edge its inverse is in the graph.
template <class T>
struct BackwardArgs {
    PropagateArgs<T> forward;  // x: gradient of the result; out: gradient of the states
    const T* states;           // the x of the forward pass
    T* relation_gradient;      // [B, parts, R, D], zeroed: one table per unit of work, so nobody waits for a lock
};

// Where queries start: query b at node[offset[b]] .. node[offset[b + 1] - 1], which are ascending.
template <class T>
struct Starts {
    const int64_t* offset;  // [B + 1]
    const int64_t* node;    // [S]
    const T* weight;        // [S]; null: all one
};

// One layer without gradients: out = x + ReLU(LayerNorm(W [x ; agg] + b)), agg = propagated x + weight * boundary at starts.
template <class T>
struct LayerArgs {
    Graph graph;
    Algebra algebra;
    int64_t queries, channels;
    const T* x;            // [B, N, D]; null: zero but for the boundary at the starts
    const T* relation;     // [U, R, D]
    const int64_t* which;  // [B]: the table of each query; null: the first
    Starts<T> starts;
    const T* boundary;  // [B, D]
    const T* packed;    // the half of W for x, then the half for agg; see linear.inl
    const T* bias;      // padded
    const T* norm_weight;
    const T* norm_bias;
    T eps;
    T* out;
    int64_t parts;
    const Cut* cuts;
    T* head;   // [B, parts, D]: the beginning of the sum of a node that is cut
    T* carry;  // [B, parts, D]: the rest
    int threads;
    Units* units;  // B * parts; in the first layer B
    // For a backward pass to come, else null: aggregates and normalised values [B, N, D], 1 / deviation [B, N].
    T* agg;
    T* normalised;
    T* scale;

    const T* table(int64_t b) const { return relation + (which ? which[b] : 0) * graph.num_types * channels; }
};

// Backward through ReLU, LayerNorm and the linear map of a layer, for rows = B * N nodes.
template <class T>
struct UpdateBackwardArgs {
    int64_t rows, channels;
    const T* gradient;  // of out, [rows, D]
    const T* normalised;
    const T* scale;
    const T* packed;  // of the transposed weight: D inputs, 2 D outputs
    const T* zeros;   // padded(2 D)
    const T* norm_weight;
    const T* norm_bias;
    T* linear_gradient;  // of W [x ; agg] + b, [rows, D]
    T* x_gradient;       // the residual included
    T* agg_gradient;
    T* sums;  // [units, 3, D], zeroed: gradients of norm weight, norm bias and bias
    int64_t units;
    int threads;
};

// Attention over branches and the score of every entity. F_k = [z_k ; q]; what depends on q alone comes ready.
template <class T>
struct ScoreArgs {
    int64_t queries, nodes, branches, channels, attention, hidden;
    const T* const* states;       // [K] pointers to z_k: query b begins at b * query_stride, rows are `channels` apart
    int64_t query_stride;
    const T* key_weight;    // [K, A, D]; null: no keys
    const T* key_query;     // [B, K, A]
    const T* context;       // [B, A], of length one
    T temperature, mix;     // mix: share of the uniform distribution
    const T* weight;        // [B, K]: branch weights where there are no keys
    const T* hidden_weight;  // [K, H, D]
    const T* hidden_query;   // [B, K, H]
    const T* hidden_bias;    // [H]
    const T* out_weight;     // [H]
    T out_bias;
    T* score;         // [B, N]
    T* branch_weight;  // [B, N, K]
    int threads;
};

template <class T>
struct LayerKernels {
    void (*propagate)(const PropagateArgs<T>&);
    void (*backward)(const BackwardArgs<T>&);
    void (*layer)(const LayerArgs<T>&);
    // Packed weights have 2 D * padded(D) numbers, the bias padded(D).
    void (*pack_layer)(const T* weight, const T* bias, int64_t channels, T* packed, T* padded_bias);
    // The transpose: 2 D outputs from D inputs, D * padded(2 D) numbers.
    void (*pack_transposed)(const T* weight, int64_t channels, T* packed);
    void (*update_backward)(const UpdateBackwardArgs<T>&);
    void (*score)(const ScoreArgs<T>&);
    int64_t (*padded)(int64_t columns);
};

struct Kernels {
    const char* name;
    LayerKernels<float> f32;
    LayerKernels<double> f64;

    template <class T>
    const LayerKernels<T>& of() const;
};

template <>
inline const LayerKernels<float>& Kernels::of<float>() const {
    return f32;
}
template <>
inline const LayerKernels<double>& Kernels::of<double>() const {
    return f64;
}

// The table for an instruction set by name; nullptr if it is not compiled in or this machine lacks it.
const Kernels* kernels_named(const char* name);
// The best one for this machine.
const Kernels* best_kernels();

}  // namespace gamma_kg
