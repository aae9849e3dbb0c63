// The table of kernels that each instruction set fills in, and the arguments they take. Records without functions: see graph.h.
#pragma once

#include "graph.h"

namespace gamma_kg {

// Who does which unit of work: see units.h, which kernels must not include (simd.h says why).
class Units;
// The next unit for a thread; -1 when all are taken.
int64_t take_unit(Units& units, int thread);

// Memory that kernels work in. It is taken before the threads begin, so that a failure is an exception where one can be caught.
struct Workspace {
    unsigned char* shared;  // of all threads; null where a kernel wants none
    unsigned char* memory;  // of the first thread, the others' follow
    int64_t bytes;          // of each thread
};

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
    T* rest;          // [B, parts, D]: what a part adds to a node that an earlier part began
    int threads;
    Units* units;             // B * parts
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

// What is learned in a layer.
template <class T>
struct LayerWeights {
    const T* const* relation;  // [U]: tables [R, D], each where it was made
    const T* packed;           // the half of W for x, then the half for agg; see linear.inl
    const T* bias;             // padded
    const T* norm_weight;
    const T* norm_bias;
    T eps;
};

// One layer without gradients: out = x + ReLU(LayerNorm(W [x ; agg] + b)), agg = propagated x + weight * boundary at starts.
template <class T>
struct LayerArgs {
    Graph graph;
    Algebra algebra;
    int64_t queries, channels;
    const T* x;            // [B, N, D]; null: zero but for the boundary at the starts
    const int64_t* which;  // [B]: the relation table of each query; null: the first
    Starts<T> starts;
    const T* boundary;  // [B, D]
    LayerWeights<T> layer;
    T* out;
    int64_t parts;
    const Cut* cuts;
    T* begun;  // [B, parts, D]: the beginning of the sum of a node that is cut
    T* rest;   // [B, parts, D]: the rest
    int threads;
    Units* units;  // B * parts; in the first layer B
    Workspace work;
    // For a backward pass to come, else null: aggregates and normalised values [B, N, D], 1 / deviation [B, N].
    T* agg;
    T* normalised;
    T* scale;
};

// All layers of many small graphs that lie side by side in one, each with a query of its own: one thread takes a query through
// all of them, and its states stay in the cache.
template <class T>
struct NeighbourhoodArgs {
    Graph graph;  // the union; the nodes of query b are offset[b] .. offset[b + 1]
    Algebra algebra;
    int64_t queries, channels;
    const int64_t* offset;  // [B + 1]
    const int64_t* which;
    Starts<T> starts;  // places in the union
    const T* boundary;
    const LayerWeights<T>* layers;
    int64_t num_layers;
    T* out;                                                    // [N, D]
    int64_t most_nodes, most_groups, most_edges, most_starts;  // of one query
    unsigned char* sound;                                      // [B]: set to 0 where an edge or a start leaves its graph
    int threads;
    Units* units;  // B
    Workspace work;
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
    T* sums;  // [parts, 3, D], zeroed: gradients of norm weight, norm bias and bias
    int64_t parts;
    int threads;
    Units* units;  // parts
    Workspace work;
};

// Candidates first .. last of a query.
struct Candidates {
    int64_t query, first, last;
};
// So many at most make a unit: the query's part of the weights is packed for each.
constexpr int64_t kCandidates = 960;

// Attention over branches and the score of every candidate. F_k = [z_k ; q]; what depends on q alone comes ready.
template <class T>
struct ScoreArgs {
    int64_t queries, branches, channels, attention, hidden;
    const T* const* states;       // [K] pointers to z_k
    const int64_t* state_begin;   // [B]: where the states of a query begin; rows are `channels` apart
    const int64_t* result_begin;  // [B]: where its results begin, in candidates
    const T* key_weight;          // [K, A, D]; null: no keys
    const T* key_query;           // [B, K, A]
    const T* context;             // [B, A], of length one
    T temperature, mix;           // mix: share of the uniform distribution
    const T* weight;              // [B, K]: branch weights where there are no keys
    const T* hidden_weight;       // [K, H, D]
    const T* hidden_query;        // [B, K, H]
    const T* hidden_bias;         // [H]
    const T* out_weight;          // [H]
    T out_bias;
    T* score;          // by candidate
    T* branch_weight;  // by candidate, K each
    const Candidates* candidates;
    int threads;
    Units* units;
    Workspace work;
};

template <class T>
struct LayerKernels {
    void (*propagate)(const PropagateArgs<T>&);
    void (*backward)(const BackwardArgs<T>&);
    void (*layer)(const LayerArgs<T>&);
    void (*neighbourhoods)(const NeighbourhoodArgs<T>&);
    // Packed weights have 2 D * padded(D) numbers, the bias padded(D).
    void (*pack_layer)(const T* weight, const T* bias, int64_t channels, T* packed, T* padded_bias);
    // The transpose: 2 D outputs from D inputs, D * padded(2 D) numbers.
    void (*pack_transposed)(const T* weight, int64_t channels, T* packed);
    void (*update_backward)(const UpdateBackwardArgs<T>&);
    void (*score)(const ScoreArgs<T>&);
    int64_t (*padded)(int64_t columns);
    // What a thread, and all together, need of a workspace.
    int64_t (*layer_bytes)(const LayerArgs<T>&);
    int64_t (*neighbourhood_bytes)(const NeighbourhoodArgs<T>&);
    int64_t (*update_backward_bytes)(const UpdateBackwardArgs<T>&);
    int64_t (*score_bytes)(const ScoreArgs<T>&);
    int64_t (*score_shared_bytes)(const ScoreArgs<T>&);
};

struct Kernels {
    const char* name;
    LayerKernels<float> f32;
    LayerKernels<double> f64;
};

// The table for an instruction set by name; nullptr if it is not compiled in or this machine lacks it.
const Kernels* kernels_named(const char* name);
// The best one for this machine.
const Kernels* best_kernels();

}  // namespace gamma_kg
