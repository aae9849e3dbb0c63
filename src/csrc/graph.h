// The sorted edges of gamma_kg.graph.edges as raw arrays, and how they are cut into pieces of equal work.
#pragma once

#include <cstdint>

namespace gamma_kg {

enum class Algebra : int { real = 0, complex = 1, split_complex = 2, dual = 3 };

struct Graph {
    int64_t num_nodes;
    int64_t num_types;
    const int64_t* node_ptr;    // [num_nodes + 1], into groups
    const int32_t* group_type;  // [groups]
    const int64_t* group_ptr;   // [groups + 1], into neighbour
    const int32_t* neighbour;   // [edges]
    const int32_t* inverse;     // [num_types]
};
// No functions in here that the linker could merge: code of every instruction set includes this file (simd.h says more).

// A place in the sorted edges. `edge` is the first edge of `node`, except where a cut falls inside a node that has more
// edges than a fair share: then both pieces hold a part of that node's sum.
struct Cut {
    int64_t node;
    int64_t group;
    int64_t edge;
};

// What a node costs beside its edges, in edges: in propagation its row is begun and written, in a layer the linear map
// (two squares of the channels, at two vectors a cycle) comes on top.
constexpr int64_t kNodeCost = 4;
int64_t layer_node_cost(int64_t channels);

// The cuts 0 .. parts of the graph; the array must hold parts + 1. They may go through nodes, unless told otherwise.
void cut_evenly(const Graph& graph, int64_t node_cost, int64_t parts, Cut* cuts, bool through_nodes = true);

// The same graph with its nodes numbered anew, in the order in which its edges are read fastest; arrays to be written.
struct Renumbered {
    int32_t* place;  // [num_nodes]: the new number of each node
    int64_t* node_ptr;
    int32_t* group_type;
    int64_t* group_ptr;
    int32_t* neighbour;
};
void renumber(const Graph& graph, const Renumbered& to);

// Into how many parts a query is cut. Forward it depends on nothing but the graph and the width: a node that a cut goes through
// is summed in two pieces, and results should have the same bits whatever the threads and the queries beside. The number is
// such that a dozen threads have some units each, and no part is too small. A backward pass takes as few as keep the threads
// busy: each part sums the gradients of all relations on its own.
constexpr int64_t kForwardParts = 64, kBackwardUnits = 4;
int64_t forward_parts(const Graph& graph, int64_t channels);
int64_t backward_parts(const Graph& graph, int64_t queries, int64_t channels, int threads);

}  // namespace gamma_kg
