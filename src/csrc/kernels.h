// The table of kernels that each instruction set fills in, and the arguments they take.
#pragma once

#include "graph.h"

namespace gamma_kg {

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
};

// Gradients of the above for x and relation, in one pass over the edges: with every edge its inverse is in the graph.
template <class T>
struct BackwardArgs {
    PropagateArgs<T> forward;  // x: gradient of the result; out: gradient of the states
    const T* states;           // the x of the forward pass
    T* relation_gradient;      // [B, parts, R, D], zeroed: one table per unit of work, so nobody waits for a lock
};

struct Kernels {
    const char* name;
    void (*propagate_f32)(const PropagateArgs<float>&);
    void (*propagate_f64)(const PropagateArgs<double>&);
    void (*backward_f32)(const BackwardArgs<float>&);
    void (*backward_f64)(const BackwardArgs<double>&);
};

// The table for an instruction set by name; nullptr if it is not compiled in or this machine lacks it.
const Kernels* kernels_named(const char* name);
// The best one for this machine.
const Kernels* best_kernels();

}  // namespace gamma_kg
