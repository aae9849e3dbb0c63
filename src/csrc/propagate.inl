// Propagation, forward and backward. Included once per instruction set (see simd.h).
//
// A node owns groups of edges with one type. The rows of a group are summed first and multiplied by the relation once:
// the products are bilinear (MODEL.md §5). All sums of a row stay in registers; a row wider than that is done in chunks.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::Algebra;
using gamma_kg::BackwardArgs;
using gamma_kg::Cut;
using gamma_kg::Graph;
using gamma_kg::PropagateArgs;

// Edges between the row being summed and the row being fetched: hides the latency of the third-level cache.
constexpr int64_t kAhead = 16;
// States of this many bytes stay in the second-level cache: there fetching ahead costs more than it gains.
constexpr int64_t kNear = 384 << 10;

constexpr int components(Algebra algebra) { return algebra == Algebra::real ? 1 : 2; }
constexpr int sigma(Algebra algebra) {
    return algebra == Algebra::complex ? -1 : algebra == Algebra::split_complex ? 1 : 0;
}

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
    const T* own = nullptr;            // backward: the state of the node at hand
    T* relation_gradient = nullptr;    // backward: [R, D]
    bool accumulate = false;
};

// Ask for `bytes` of each component of a row. Lines come in pairs: the processor fetches the other one of 128 bytes by itself,
// and asking for it as well would take a load's place.
template <int bytes, int K, class T>
GAMMA_INLINE void fetch(const T* row, int64_t half) {
    GAMMA_UNROLL for (int k = 0; k < K; ++k) GAMMA_UNROLL for (int line = 0; line < bytes; line += 128)
        GAMMA_PREFETCH(reinterpret_cast<const char*>(row + k * half) + line);
}

// Sum over the edges first .. last of one node, of `C` vectors per component beginning at channel `offset`.
// `group` is the group of the first edge. The sum is added to what `out` holds if the query says so.
// `width` is the number of channels where it is known to the compiler, else 0. `far` rows are fetched ahead.
template <class V, int C, int width, Algebra A, bool backward, bool far, class T>
static void sum_chunk(const Graph& graph, const Query<T>& query, int64_t offset, int64_t group, int64_t first, int64_t last,
                      T* out) {
    using L = Lanes<V, T>;
    constexpr int K = components(A);
    const int64_t channels = width ? width : query.channels, half = channels / 2;
    const int32_t* neighbour = graph.neighbour;
    const int64_t ahead = last + kAhead <= graph.num_edges() ? kAhead : 0;
    const T* x = query.x + offset;
    V acc[C][K];
    GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL for (int k = 0; k < K; ++k)
        acc[c][k] = query.accumulate ? L::load(out + offset + c * L::count + k * half) : V{};

    GAMMA_ROLLED for (int64_t edge = first; edge < last; ++group) {
        int64_t stop = smaller(graph.group_ptr[group + 1], last);
        if (edge == stop) continue;  // a group whose edges have all been taken out
        V sum[C][K];
        const T* row = x + channels * neighbour[edge];
        GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL for (int k = 0; k < K; ++k)
            sum[c][k] = L::load(row + c * L::count + k * half);
        if (far) fetch<C * sizeof(V), K>(x + channels * neighbour[edge + ahead], half);
        GAMMA_ROLLED for (++edge; edge < stop; ++edge) {
            row = x + channels * neighbour[edge];
            GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL for (int k = 0; k < K; ++k)
                sum[c][k] += L::load(row + c * L::count + k * half);
            if (far) fetch<C * sizeof(V), K>(x + channels * neighbour[edge + ahead], half);
        }
        int64_t type = graph.group_type[group];
        if constexpr (backward) type = graph.inverse[type];
        const T* relation = query.relation + channels * type + offset;
        GAMMA_UNROLL for (int c = 0; c < C; ++c) {
            V r[K];
            GAMMA_UNROLL for (int k = 0; k < K; ++k) {
                r[k] = L::load(relation + c * L::count + k * half);
                if (K > 1 && c > 0) GAMMA_KEEP(r[k]);  // in the registers of the sums used up before
            }
            multiply_add<A, backward>(acc[c], sum[c], r);
        }
        if constexpr (backward) {
            T* gradient = query.relation_gradient + channels * type + offset;
            const T* own = query.own + offset;
            GAMMA_UNROLL for (int c = 0; c < C; ++c) {
                V total[K], state[K];
                GAMMA_UNROLL for (int k = 0; k < K; ++k) {
                    total[k] = L::load(gradient + c * L::count + k * half);
                    state[k] = L::load(own + c * L::count + k * half);
                }
                multiply_add<A, true>(total, sum[c], state);
                GAMMA_UNROLL for (int k = 0; k < K; ++k) L::store(gradient + c * L::count + k * half, total[k]);
            }
        }
    }
    GAMMA_UNROLL for (int c = 0; c < C; ++c) GAMMA_UNROLL for (int k = 0; k < K; ++k)
        L::store(out + offset + c * L::count + k * half, acc[c][k]);
}

// The same for the whole row: as many wide chunks as fit, then narrower ones, then single channels.
template <Algebra A, bool backward, bool far, class T>
static void sum_chunks(const Graph& graph, const Query<T>& query, int64_t group, int64_t first, int64_t last, T* out) {
    using V = Vec<T>;
    constexpr int64_t lanes = Lanes<V, T>::count;
    constexpr int widest = 8 / components(A);  // sums and results together fill the sixteen registers of AVX2
    constexpr int usual = 64, usual_chunk = smaller<int>(widest, usual / components(A) / lanes);
    if (query.channels == usual) {
        for (int64_t at = 0; at < usual / components(A); at += usual_chunk * lanes)
            sum_chunk<V, usual_chunk, usual, A, backward, far>(graph, query, at, group, first, last, out);
        return;
    }
    const int64_t width = query.channels / components(A);
    int64_t at = 0;
    for (; at + 4 * lanes <= width; at += 4 * lanes)
        sum_chunk<V, 4, 0, A, backward, far>(graph, query, at, group, first, last, out);
    for (; at + lanes <= width; at += lanes) sum_chunk<V, 1, 0, A, backward, far>(graph, query, at, group, first, last, out);
    for (; at + 2 <= width; at += 2) sum_chunk<T, 2, 0, A, backward, far>(graph, query, at, group, first, last, out);
    for (; at < width; ++at) sum_chunk<T, 1, 0, A, backward, far>(graph, query, at, group, first, last, out);
}

template <Algebra A, bool backward, class T>
static void sum_row(const Graph& graph, const Query<T>& query, int64_t group, int64_t first, int64_t last, T* out) {
    const bool far = graph.num_nodes * query.channels * int64_t(sizeof(T)) > kNear;
    auto sum = far ? sum_chunks<A, backward, true, T> : sum_chunks<A, backward, false, T>;
    sum(graph, query, group, first, last, out);
}

// One part of one query. A node that the part before began is summed into `carry`; all others go to `out`.
template <Algebra A, bool backward, class T>
static void sum_part(const PropagateArgs<T>& args, Query<T> query, const T* states, const Cut& from, const Cut& to, T* out,
                     T* carry) {
    const Graph& graph = args.graph;
    const int64_t channels = args.channels;
    int64_t node = from.node;
    if (from.edge > graph.edge_begin(node)) {
        int64_t last = smaller(graph.edge_begin(node + 1), to.edge);
        if (backward) query.own = states + channels * node;
        query.accumulate = false;
        sum_row<A, backward>(graph, query, from.group, from.edge, last, carry);
        query.accumulate = args.accumulate;
        ++node;
    }
    for (; node < to.node; ++node) {
        if (backward) query.own = states + channels * node;
        sum_row<A, backward>(graph, query, graph.node_ptr[node], graph.edge_begin(node), graph.edge_begin(node + 1),
                             out + channels * node);
    }
    if (node == to.node && node < graph.num_nodes && to.edge > graph.edge_begin(node)) {
        if (backward) query.own = states + channels * node;
        sum_row<A, backward>(graph, query, graph.node_ptr[node], graph.edge_begin(node), to.edge, out + channels * node);
    }
}

template <Algebra A, bool backward, class T>
static void run(const PropagateArgs<T>& args, const T* states, T* relation_gradient) {
    const Graph& graph = args.graph;
    const int64_t state_stride = graph.num_nodes * args.channels, table = graph.num_types * args.channels;
    const int64_t units = args.queries * args.parts;
    // Which thread does a unit changes nothing in the result: every unit writes only what is its own.
#pragma omp parallel for schedule(dynamic, 1) num_threads(args.threads) if (args.threads > 1 && units > 1)
    for (int64_t unit = 0; unit < units; ++unit) {
        const int64_t b = unit / args.parts, part = unit % args.parts;
        Query<T> query{args.x + b * state_stride, args.relation + b * args.relation_stride, args.channels};
        if (backward) query.relation_gradient = relation_gradient + unit * table;
        query.accumulate = args.accumulate;
        sum_part<A, backward>(args, query, backward ? states + b * state_stride : nullptr, args.cuts[part],
                              args.cuts[part + 1], args.out + b * state_stride, args.carry + unit * args.channels);
    }
    for (int64_t unit = 0; unit < units; ++unit) {
        const Cut& from = args.cuts[unit % args.parts];
        if (from.node == graph.num_nodes || from.edge == graph.edge_begin(from.node)) continue;
        T* row = args.out + unit / args.parts * state_stride + args.channels * from.node;
        for (int64_t c = 0; c < args.channels; ++c) row[c] += args.carry[unit * args.channels + c];
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
