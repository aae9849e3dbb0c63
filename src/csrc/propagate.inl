// Propagation, forward and backward. Included once per instruction set (see simd.h).
//
// A node owns groups of edges with one type. The rows of a group are summed first and multiplied by the relation once:
// the products are bilinear (docs/model.md §5). All sums of a row stay in registers; a row wider than that is done in chunks.
#pragma once
#include "kernels.h"
#include "simd.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::Algebra;
using gamma_kg::BackwardArgs;
using gamma_kg::Cut;
using gamma_kg::Graph;
using gamma_kg::PropagateArgs;
using gamma_kg::take_unit;

// The number of this thread among those of the parallel region it is in.
GAMMA_INLINE int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

GAMMA_INLINE int64_t edge_begin(const Graph& graph, int64_t node) { return graph.group_ptr[graph.node_ptr[node]]; }
GAMMA_INLINE int64_t num_edges(const Graph& graph) { return edge_begin(graph, graph.num_nodes); }

// Edges between the row being summed and the row being fetched: hides the latency of the third-level cache.
constexpr int64_t kAhead = 16;
// States of this many bytes stay in the second-level cache: there fetching ahead costs more than it gains.
constexpr int64_t kNear = 384 << 10;

constexpr int components(Algebra algebra) { return algebra == Algebra::real ? 1 : 2; }
constexpr int sigma(Algebra algebra) { return algebra == Algebra::complex ? -1 : algebra == Algebra::split_complex ? 1 : 0; }

// acc += s * r, component by component; `backward` takes the adjoint of the map s -> s * r.
template <Algebra A, bool backward, class V>
GAMMA_INLINE void multiply_add(V* acc, const V* s, const V* r) {
    if constexpr (A == Algebra::real) {
        acc[0] += s[0] * r[0];
    } else if constexpr (!backward) {
        acc[0] += s[0] * r[0];
        if constexpr (sigma(A) > 0) acc[0] += s[1] * r[1];
        if constexpr (sigma(A) < 0) acc[0] -= s[1] * r[1];
        acc[1] += s[0] * r[1];
        acc[1] += s[1] * r[0];
    } else {
        acc[0] += s[0] * r[0];
        acc[0] += s[1] * r[1];
        acc[1] += s[1] * r[0];
        if constexpr (sigma(A) > 0) acc[1] += s[0] * r[1];
        if constexpr (sigma(A) < 0) acc[1] -= s[0] * r[1];
    }
}

// What one query reads and writes; rows are `channels` apart.
template <class T>
struct Query {
    const T* x;
    const T* relation;
    int64_t channels;
    const T* states = nullptr;       // backward: the states of the forward pass
    T* relation_gradient = nullptr;  // backward: [R, D]
    bool accumulate = false;
};

// Nodes that follow each other and are summed in one go. Their edges are first .. last, the first one in `group`: a cut may
// have gone through the first node or the last.
struct Run {
    int64_t node, count, group, first, last;
};

GAMMA_INLINE Run whole_nodes(const Graph& graph, int64_t node, int64_t count) {
    return {node, count, graph.node_ptr[node], edge_begin(graph, node), edge_begin(graph, node + count)};
}

// The piece of a cut node that belongs to the part from `from` to `to`, where an earlier part began the node; else nothing.
GAMMA_INLINE Run rest_of_cut_node(const Graph& graph, const Cut& from, const Cut& to) {
    if (from.edge <= edge_begin(graph, from.node)) return {from.node, 0, 0, 0, 0};
    return {from.node, 1, from.group, from.edge, smaller(edge_begin(graph, from.node + 1), to.edge)};
}

// The piece of a cut node that a part which has come to `node` begins and a later one goes on with; else nothing.
GAMMA_INLINE Run beginning_of_cut_node(const Graph& graph, int64_t node, const Cut& to) {
    if (node != to.node || node == graph.num_nodes || to.edge <= edge_begin(graph, node)) return {node, 0, 0, 0, 0};
    return {node, 1, graph.node_ptr[node], edge_begin(graph, node), to.edge};
}

// So few that their rows stay in the first cache, should the channels take several passes.
constexpr int64_t kRun = 6;

// Ask for `bytes` of each component of a row. Lines come in pairs: the processor fetches the other one of 128 bytes by itself,
// and asking for it as well would take a load's place.
template <int bytes, int K, class T>
GAMMA_INLINE void fetch(const T* row, int64_t half) {
    GAMMA_UNROLL for (int k = 0; k < K; ++k) GAMMA_UNROLL
        for (int line = 0; line < bytes; line += 128) GAMMA_PREFETCH(reinterpret_cast<const char*>(row + k * half) + line);
}

// Ask for `count` values that will be read.
template <class T>
GAMMA_INLINE void fetch_to_read(const T* values, int64_t count) {
    constexpr int64_t line = 64 / sizeof(T);
    for (int64_t i = 0; i < count; i += line) GAMMA_PREFETCH(values + i);
}

// Ask for `count` values that will be written.
template <class T>
GAMMA_INLINE void fetch_to_write(T* values, int64_t count) {
    constexpr int64_t line = 64 / sizeof(T);
    for (int64_t i = 0; i < count; i += line) GAMMA_PREFETCH_TO_WRITE(values + i);
}

// Sums of a run, of `C` vectors per component beginning at channel `offset`; added to what `out` holds if the query says so.
// `width` is the number of channels where it is known to the compiler, else 0. `far` rows are fetched ahead, and there are
// `kAhead` edges more behind the run.
//
// The number of a row is read one edge, that of a relation one group before it is needed, across the borders of nodes; at
// the end of all edges the last number is read again.
template <class V, int C, int width, Algebra A, bool backward, bool far, class T>
static void sum_chunk(const Graph& graph, const Query<T>& query, int64_t offset, const Run& run, T* out) {
    using L = Lanes<V, T>;
    constexpr int K = components(A);
    const int64_t channels = width ? width : query.channels, half = channels / 2;
    const int32_t *const neighbour = graph.neighbour, *const group_type = graph.group_type;
    const int64_t *const group_ptr = graph.group_ptr, *node_end = graph.node_ptr + run.node;
    const int64_t last_edge = num_edges(graph) - 1, last_group = graph.node_ptr[graph.num_nodes] - 1;
    const T *const x = query.x + offset, *const relations = query.relation + offset;
    auto row_of = [&](int64_t edge) { return x + channels * neighbour[far ? edge : smaller(edge, last_edge)]; };
    auto relation_of = [&](int64_t group) {
        int64_t type = group_type[group];
        if constexpr (backward) type = graph.inverse[type];
        return relations + channels * type;
    };
    int64_t edge = run.first, group = run.group, next_stop = group_ptr[group + 1];
    const T *row = row_of(edge), *next_relation = relation_of(group);
    out += offset;
    for (int64_t i = 0; i < run.count; ++i, out += channels) {
        ++node_end;
        const int64_t end = i < run.count - 1 ? group_ptr[*node_end] : run.last;
        V acc[C][K];
        GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL
            for (int k = 0; k < K; ++k) acc[c][k] = query.accumulate ? L::load(out + c * L::count + k * half) : V{};
        GAMMA_ROLLED while (edge < end) {
            const int64_t stop = smaller(next_stop, end);
            const T* const relation = next_relation;
            group = far ? group + 1 : smaller(group + 1, last_group);
            next_stop = group_ptr[group + 1];
            next_relation = relation_of(group);
            if (edge == stop) continue;  // a group whose edges have all been taken out
            V sum[C][K];
            const T* next_row = row_of(edge + 1);
            GAMMA_BEFORE(next_relation, row);
            GAMMA_BEFORE(next_row, row);
            GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL
                for (int k = 0; k < K; ++k) sum[c][k] = L::load(row + c * L::count + k * half);
            if (far) fetch<C * sizeof(V), K>(row_of(edge + kAhead), half);
            row = next_row;
            GAMMA_ROLLED for (++edge; edge < stop; ++edge) {
                next_row = row_of(edge + 1);
                GAMMA_BEFORE(next_row, row);
                GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL
                    for (int k = 0; k < K; ++k) sum[c][k] += L::load(row + c * L::count + k * half);
                if (far) fetch<C * sizeof(V), K>(row_of(edge + kAhead), half);
                row = next_row;
            }
            GAMMA_UNROLL for (int c = 0; c < C; ++c) {
                V r[K];
                GAMMA_UNROLL for (int k = 0; k < K; ++k) {
                    r[k] = L::load(relation + c * L::count + k * half);
                    if (K > 1 && c > 0) GAMMA_KEEP(r[k]);  // in the registers of the sums used up before
                }
                multiply_add<A, backward>(acc[c], sum[c], r);
            }
            if constexpr (backward) {
                T* gradient = query.relation_gradient + (relation - query.relation);
                const T* own = query.states + channels * (run.node + i) + offset;
                GAMMA_UNROLL for (int c = 0; c < C; ++c) {
                    V total[K], state[K];
                    GAMMA_UNROLL for (int k = 0; k < K; ++k) {
                        total[k] = L::load(gradient + c * L::count + k * half);
                        state[k] = L::load(own + c * L::count + k * half);
                    }
                    multiply_add<A, true>(total, sum[c], state);
                    GAMMA_UNROLL for (int k = 0; k < K; ++k)
                        L::store(gradient + c * L::count + k * half, total[k]);
                }
            }
        }
        GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL
            for (int k = 0; k < K; ++k) L::store(out + c * L::count + k * half, acc[c][k]);
    }
}

// The same for whole rows: as many wide chunks as fit, then narrower ones, then single channels.
template <Algebra A, bool backward, bool far, class T>
static void sum_chunks(const Graph& graph, const Query<T>& query, const Run& run, T* out) {
    using V = Vec<T>;
    constexpr int64_t lanes = Lanes<V, T>::count;
    constexpr int widest = 8 / components(A);  // sums and results together fill the sixteen registers of AVX2
    constexpr int usual = 64, usual_chunk = smaller<int>(widest, usual / components(A) / lanes);
    if (query.channels == usual) {
        for (int64_t at = 0; at < usual / components(A); at += usual_chunk * lanes)
            sum_chunk<V, usual_chunk, usual, A, backward, far>(graph, query, at, run, out);
        return;
    }
    const int64_t width = query.channels / components(A);
    int64_t at = 0;
    for (; at + 4 * lanes <= width; at += 4 * lanes) sum_chunk<V, 4, 0, A, backward, far>(graph, query, at, run, out);
    for (; at + lanes <= width; at += lanes) sum_chunk<V, 1, 0, A, backward, far>(graph, query, at, run, out);
    for (; at + 2 <= width; at += 2) sum_chunk<T, 2, 0, A, backward, far>(graph, query, at, run, out);
    for (; at < width; ++at) sum_chunk<T, 1, 0, A, backward, far>(graph, query, at, run, out);
}

template <Algebra A, bool backward, class T>
static void sum_run(const Graph& graph, const Query<T>& query, const Run& run, T* out) {
    if (run.first == num_edges(graph)) {  // nothing left to read a number of
        if (!query.accumulate)
            for (int64_t i = 0; i < run.count * query.channels; ++i) out[i] = 0;
        return;
    }
    const bool far = graph.num_nodes * query.channels * int64_t(sizeof(T)) > kNear && run.last + kAhead <= num_edges(graph);
    auto sum = far ? sum_chunks<A, backward, true, T> : sum_chunks<A, backward, false, T>;
    sum(graph, query, run, out);
}

// One part of one query. A node that the part before began is summed into `rest`; all others go to `out`.
template <Algebra A, bool backward, class T>
static void sum_part(const PropagateArgs<T>& args, Query<T> query, const Cut& from, const Cut& to, T* out, T* rest) {
    const Graph& graph = args.graph;
    const Run continued = rest_of_cut_node(graph, from, to);
    if (continued.count) sum_run<A, backward>(graph, query, continued, rest);
    query.accumulate = args.accumulate;
    int64_t node = from.node + continued.count;
    while (node < to.node) {
        const Run run = whole_nodes(graph, node, smaller(kRun, to.node - node));
        fetch_to_write(out + args.channels * node, args.channels * run.count);
        sum_run<A, backward>(graph, query, run, out + args.channels * node);
        node += run.count;
    }
    const Run begun = beginning_of_cut_node(graph, node, to);
    if (begun.count) sum_run<A, backward>(graph, query, begun, out + args.channels * node);
}

template <Algebra A, bool backward, class T>
static void run(const PropagateArgs<T>& args, const T* states, T* relation_gradient) {
    const Graph& graph = args.graph;
    const int64_t state_stride = graph.num_nodes * args.channels, table = graph.num_types * args.channels;
    const int64_t units = args.queries * args.parts;
    // Which thread does a unit changes nothing in the result: every unit writes only what is its own.
#pragma omp parallel num_threads(args.threads) if (args.threads > 1 && units > 1)
    for (int64_t unit, thread = thread_number(); (unit = take_unit(*args.units, int(thread))) >= 0;) {
        const int64_t b = unit / args.parts, part = unit % args.parts;
        Query<T> query{args.x + b * state_stride, args.relation + b * args.relation_stride, args.channels};
        if (backward) query.states = states + b * state_stride, query.relation_gradient = relation_gradient + unit * table;
        sum_part<A, backward>(args, query, args.cuts[part], args.cuts[part + 1], args.out + b * state_stride,
                              args.rest + unit * args.channels);
    }
    for (int64_t unit = 0; unit < units; ++unit) {
        const Cut& from = args.cuts[unit % args.parts];
        if (from.node == graph.num_nodes || from.edge == edge_begin(graph, from.node)) continue;
        T* row = args.out + unit / args.parts * state_stride + args.channels * from.node;
        for (int64_t c = 0; c < args.channels; ++c) row[c] += args.rest[unit * args.channels + c];
    }
}

template <bool backward, class T>
static void run_algebra(const PropagateArgs<T>& args, const T* states, T* relation_gradient) {
    switch (args.algebra) {
        case Algebra::real: return run<Algebra::real, backward>(args, states, relation_gradient);
        case Algebra::complex: return run<Algebra::complex, backward>(args, states, relation_gradient);
        case Algebra::split_complex: return run<Algebra::split_complex, backward>(args, states, relation_gradient);
        case Algebra::dual: return run<Algebra::dual, backward>(args, states, relation_gradient);
    }
}

template <class T>
static void propagate(const PropagateArgs<T>& args) {
    run_algebra<false, T>(args, nullptr, nullptr);
}

template <class T>
static void propagate_backward(const BackwardArgs<T>& args) {
    run_algebra<true, T>(args.forward, args.states, args.relation_gradient);
}

}  // namespace GAMMA_ISA_NAMESPACE
