// Many small graphs side by side, each with a query of its own: a thread takes one query through all layers, so that its states
// stay in the second cache.
#pragma once
#include "layer.inl"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::LayerWeights;
using gamma_kg::NeighbourhoodArgs;

// What a thread works with: one of the graphs with numbers of its own, its starts, its states before and after a layer.
template <class T>
struct Neighbourhood {
    int64_t *node_ptr, *group_ptr, *start_node;
    int32_t* neighbour;
    T* states[2];
    Noted<T> noted;
    Scratch<T> scratch;

    static Neighbourhood in(Memory& memory, const NeighbourhoodArgs<T>& args) {
        Neighbourhood own;
        own.node_ptr = memory.take<int64_t>(args.most_nodes + 1);
        own.group_ptr = memory.take<int64_t>(args.most_groups + 1);
        own.start_node = memory.take<int64_t>(args.most_starts);
        own.neighbour = memory.take<int32_t>(args.most_edges);
        for (T*& states : own.states) states = memory.take<T>(args.most_nodes * args.channels);
        own.noted = Noted<T>::in(memory, args.most_nodes, args.graph.num_types, args.channels);
        own.scratch = Scratch<T>::in(memory, args.channels);
        return own;
    }
};

// The graph of query b, its nodes numbered from 0 on, in the memory of `own`; false if an edge leads out of it.
template <class T>
static bool separate(const NeighbourhoodArgs<T>& args, int64_t b, const Neighbourhood<T>& own, Graph* graph) {
    const Graph& all = args.graph;
    const int64_t first = args.offset[b], nodes = args.offset[b + 1] - first;
    const int64_t first_group = all.node_ptr[first], groups = all.node_ptr[first + nodes] - first_group;
    const int64_t first_edge = all.group_ptr[first_group], edges = all.group_ptr[first_group + groups] - first_edge;
    for (int64_t i = 0; i <= nodes; ++i) own.node_ptr[i] = all.node_ptr[first + i] - first_group;
    for (int64_t i = 0; i <= groups; ++i) own.group_ptr[i] = all.group_ptr[first_group + i] - first_edge;
    bool inside = true;
    for (int64_t i = 0; i < edges; ++i) {
        const int64_t node = all.neighbour[first_edge + i] - first;
        inside &= node >= 0 && node < nodes;
        own.neighbour[i] = int32_t(node);
    }
    *graph = {nodes, all.num_types, own.node_ptr, all.group_type + first_group, own.group_ptr, own.neighbour, all.inverse};
    return inside;
}

// The starts of query b as numbers of its own graph; false if one lies outside.
template <class T>
static bool separate_starts(const NeighbourhoodArgs<T>& args, int64_t b, const Neighbourhood<T>& own) {
    const int64_t first = args.starts.offset[b], count = args.starts.offset[b + 1] - first;
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t node = args.starts.node[first + i];
        inside &= node >= args.offset[b] && node < args.offset[b + 1];
        own.start_node[i] = node - args.offset[b];
    }
    return inside;
}

template <Algebra A, class T>
static void all_layers(const NeighbourhoodArgs<T>& args, int64_t b, const Neighbourhood<T>& own) {
    Graph graph;
    args.sound[b] = separate(args, b, own, &graph) && separate_starts(args, b, own);
    if (!args.sound[b]) return;
    const int64_t first_start = args.starts.offset[b], channels = args.channels;
    const int64_t starts[2] = {0, args.starts.offset[b + 1] - first_start};
    const Cut begin{0, 0, 0}, end{graph.num_nodes, graph.node_ptr[graph.num_nodes], num_edges(graph)};
    clear(own.noted.touched, graph.num_nodes);
    const T* x = nullptr;
    for (int64_t step = 0; step < args.num_layers; ++step) {
        LayerWeights<T> layer = args.layers[step];
        layer.relation += args.which ? args.which[b] : 0;
        T* const out = step + 1 < args.num_layers ? own.states[step % 2] : args.out + args.offset[b] * channels;
        const LayerArgs<T> one{graph,
                               args.algebra,
                               1,
                               channels,
                               x,
                               nullptr,
                               {starts, own.start_node, args.starts.weight ? args.starts.weight + first_start : nullptr},
                               args.boundary + b * channels,
                               layer,
                               out,
                               1,
                               nullptr,
                               nullptr,
                               nullptr,
                               1,
                               nullptr,
                               args.work,
                               nullptr,
                               nullptr,
                               nullptr};
        if (x) layer_part<A>(one, 0, begin, end, (T*)nullptr, (T*)nullptr, own.scratch);
        else first_layer_query<A>(one, 0, own.scratch, own.noted);
        x = out;
    }
}

template <class T>
static int64_t neighbourhood_bytes(const NeighbourhoodArgs<T>& args) {
    Memory memory{0};
    Neighbourhood<T>::in(memory, args);
    return int64_t(memory.at);
}

template <Algebra A, class T>
static void run_neighbourhoods(const NeighbourhoodArgs<T>& args) {
#pragma omp parallel num_threads(args.threads) if (args.threads > 1 && args.queries > 1)
    {
        const int thread = thread_number();
        Memory memory = memory_of(args.work, thread);
        const Neighbourhood<T> own = Neighbourhood<T>::in(memory, args);
        clear(own.scratch.zero, args.channels);
        for (int64_t b; (b = take_unit(*args.units, thread)) >= 0;) all_layers<A>(args, b, own);
    }
}

template <class T>
static void neighbourhoods(const NeighbourhoodArgs<T>& args) {
    switch (args.algebra) {
        case Algebra::real: return run_neighbourhoods<Algebra::real>(args);
        case Algebra::complex: return run_neighbourhoods<Algebra::complex>(args);
        case Algebra::split_complex: return run_neighbourhoods<Algebra::split_complex>(args);
        case Algebra::dual: return run_neighbourhoods<Algebra::dual>(args);
    }
}

}  // namespace GAMMA_ISA_NAMESPACE
