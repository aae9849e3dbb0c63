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

    int64_t edge_begin(int64_t node) const { return group_ptr[node_ptr[node]]; }
    int64_t num_edges() const { return edge_begin(num_nodes); }
    // Work before a node, in edges: a group costs about two edges (one product), a node what the caller says.
    int64_t work(int64_t node, int64_t node_cost) const { return edge_begin(node) + 2 * node_ptr[node] + node_cost * node; }
};

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
constexpr int64_t layer_node_cost(int64_t channels) { return kNodeCost + channels * 4 / 3; }

// The cuts 0 .. parts of the graph; the array must hold parts + 1.
void cut_evenly(const Graph& graph, int64_t node_cost, int64_t parts, Cut* cuts);

// The same graph with its nodes numbered anew, in the order in which its edges are read fastest; arrays to be written.
struct Renumbered {
    int32_t* place;  // [num_nodes]: the new number of each node
    int64_t* node_ptr;
    int32_t* group_type;
    int64_t* group_ptr;
    int32_t* neighbour;
};
void renumber(const Graph& graph, const Renumbered& to);

// How many parts per query keep `threads` busy: some units each, so that a thread that is held up holds up little, and none
// too small. A backward pass takes fewer: each part sums the gradients of all relations on its own.
constexpr int64_t kForwardUnits = 12, kBackwardUnits = 4;
int64_t parts_per_query(const Graph& graph, int64_t queries, int64_t channels, int threads, int64_t units);

}  // namespace gamma_kg
