// A whole layer without gradients: aggregation, linear map, LayerNorm, ReLU and residual of a block of nodes while the block
// is in the first cache. States are read once (and gathered from), and written once.
#pragma once
#include "linear.inl"
#include "memory.inl"
#include "propagate.inl"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::LayerArgs;
using gamma_kg::Starts;

// What a thread works with: aggregates, linear results and states of a block, and a row of zeros.
template <class T>
struct Scratch {
    T *agg, *y, *x, *zero;

    static GAMMA_INLINE Scratch in(Memory& memory, int64_t channels) {
        const int64_t width = padded<T>(channels);
        return {memory.take<T>(kBlock * width), memory.take<T>(kBlock * width), memory.take<T>(kBlock * width),
                memory.take<T>(width)};
    }
};

// The relation table of query b.
template <class T>
GAMMA_INLINE const T* table_of(const LayerArgs<T>& args, int64_t b) {
    return args.layer.relation[args.which ? args.which[b] : 0];
}

// The rest of the layer for `count` <= kBlock rows with states x_rows[i] and aggregates agg_rows[i].
template <class T>
static void update_rows(const LayerArgs<T>& args, const T** x_rows, const T** agg_rows, T* const* out_rows, int64_t count, T* y) {
    const int64_t channels = args.channels, width = padded<T>(channels);
    const int64_t filled = (count + kRows - 1) / kRows * kRows;
    for (int64_t i = count; i < filled; ++i) x_rows[i] = x_rows[count - 1], agg_rows[i] = agg_rows[count - 1];
    const T* packed_agg = args.layer.packed + channels * width;
    linear_rows(x_rows, agg_rows, filled, channels, channels, args.layer.packed, packed_agg, args.layer.bias, channels, y);
    const Norm<T> norm{args.layer.norm_weight, args.layer.norm_bias, args.layer.eps};
    T scale[kBlock], *keep[kBlock];
    if (args.normalised)
        for (int64_t i = 0; i < count; ++i) keep[i] = args.normalised + (out_rows[i] - args.out);
    auto normalise = channels == 64 ? normalise_rows<64, T> : normalise_rows<0, T>;
    normalise(y, width, x_rows, norm, channels, count, out_rows, args.normalised ? keep : nullptr, scale);
    if (args.normalised)
        for (int64_t i = 0; i < count; ++i) args.scale[(out_rows[i] - args.out) / channels] = scale[i];
}

template <class T>
static void add_row(T* to, const T* row, int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) to[c] += row[c];
}

template <class T>
static void add_scaled_row(T* to, T factor, const T* row, int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) to[c] += factor * row[c];
}

// The first start of query b at `node` or behind it.
template <class T>
GAMMA_INLINE int64_t first_start(const Starts<T>& starts, int64_t b, int64_t node) {
    int64_t low = starts.offset[b], high = starts.offset[b + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (starts.node[middle] < node) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The boundary of the starts from number `start` on that lie before node `end`, added to rows that begin with node `begin`;
// the number of the next start.
template <class T>
GAMMA_INLINE int64_t add_boundary(const LayerArgs<T>& args, int64_t b, int64_t start, int64_t begin, int64_t end, T* rows) {
    const Starts<T>& starts = args.starts;
    for (; start < starts.offset[b + 1] && starts.node[start] < end; ++start)
        add_scaled_row(rows + (starts.node[start] - begin) * args.channels, starts.weight ? starts.weight[start] : T(1),
                       args.boundary + b * args.channels, args.channels);
    return start;
}

template <Algebra A, class T>
static void layer_part(const LayerArgs<T>& args, int64_t b, const Cut& from, const Cut& to, T* begun, T* rest,
                       const Scratch<T>& scratch) {
    const Graph& graph = args.graph;
    const int64_t channels = args.channels, stride = graph.num_nodes * channels;
    const T* x = args.x + b * stride;
    const Query<T> query{x, table_of(args, b), channels};
    const Run continued = rest_of_cut_node(graph, from, to);
    if (continued.count) sum_run<A, false>(graph, query, continued, rest);
    int64_t node = from.node + continued.count;
    int64_t start = first_start(args.starts, b, node);
    while (node < to.node) {
        const int64_t begin = node, count = smaller(kBlock, to.node - begin);
        T* agg = args.agg ? args.agg + b * stride + begin * channels : scratch.agg;
        while (node < begin + count) {
            const Run run = whole_nodes(graph, node, smaller(kRun, begin + count - node));
            // What the linear map will read and the residual write is on its way while neighbours are summed.
            fetch_to_read(x + node * channels, run.count * channels);
            fetch_to_write(args.out + b * stride + node * channels, run.count * channels);
            sum_run<A, false>(graph, query, run, agg + (node - begin) * channels);
            node += run.count;
        }
        start = add_boundary(args, b, start, begin, node, agg);
        const T *x_rows[kBlock], *agg_rows[kBlock];
        T* out_rows[kBlock];
        for (int64_t i = 0; i < count; ++i) {
            x_rows[i] = x + (begin + i) * channels;
            agg_rows[i] = agg + i * channels;
            out_rows[i] = args.out + b * stride + (begin + i) * channels;
        }
        update_rows(args, x_rows, agg_rows, out_rows, count, scratch.y);
    }
    const Run beginning = beginning_of_cut_node(graph, node, to);
    if (beginning.count) sum_run<A, false>(graph, query, beginning, begun);
}

// The rows of nodes that a cut went through: all pieces are there now.
template <class T>
static void finish_cut_nodes(const LayerArgs<T>& args) {
    const Graph& graph = args.graph;
    const int64_t channels = args.channels, stride = graph.num_nodes * channels;
    Memory memory = memory_of(args.work, 0);
    const Scratch<T> scratch = Scratch<T>::in(memory, channels);
    for (int64_t b = 0; b < args.queries; ++b)
        for (int64_t part = 1; part < args.parts; ++part) {
            const Cut& cut = args.cuts[part];
            const int64_t node = cut.node;
            if (node == graph.num_nodes || cut.edge == edge_begin(graph, node)) continue;
            const Cut& before = args.cuts[part - 1];
            if (before.node == node && before.edge > edge_begin(graph, node)) continue;  // not the first cut of this node
            T* agg = args.agg ? args.agg + b * stride + node * channels : scratch.agg;
            const int64_t unit = b * args.parts + part;
            for (int64_t c = 0; c < channels; ++c) agg[c] = args.begun[(unit - 1) * channels + c];
            for (int64_t later = part; later < args.parts && args.cuts[later].node == node; ++later)
                add_row(agg, args.rest + (b * args.parts + later) * channels, channels);
            add_boundary(args, b, first_start(args.starts, b, node), node, node + 1, agg);
            const T *x_rows[kBlock] = {args.x + b * stride + node * channels}, *agg_rows[kBlock] = {agg};
            T* out_row = args.out + b * stride + node * channels;
            update_rows(args, x_rows, agg_rows, &out_row, 1, scratch.y);
        }
}

template <Algebra A, class T>
static void run_layer(const LayerArgs<T>& args) {
    const int64_t units = args.queries * args.parts;
#pragma omp parallel num_threads(args.threads) if (args.threads > 1 && units > 1)
    {
        const int thread = thread_number();
        Memory memory = memory_of(args.work, thread);
        const Scratch<T> scratch = Scratch<T>::in(memory, args.channels);
        for (int64_t unit; (unit = take_unit(*args.units, thread)) >= 0;) {
            const int64_t b = unit / args.parts, part = unit % args.parts;
            layer_part<A>(args, b, args.cuts[part], args.cuts[part + 1], args.begun + unit * args.channels,
                          args.rest + unit * args.channels, scratch);
        }
    }
    finish_cut_nodes(args);
}

// What the first layer notes: of the nodes whether they are touched, a list of those that are, and their weights as starts; of
// the relations what they make of the boundary.
template <class T>
struct Noted {
    unsigned char* touched;
    int64_t* list;
    T *weight, *product;

    static GAMMA_INLINE Noted in(Memory& memory, int64_t nodes, int64_t types, int64_t channels) {
        return {memory.take<unsigned char>(nodes), memory.take<int64_t>(nodes), memory.take<T>(nodes),
                memory.take<T>((types + 1 + kBlock) * padded<T>(channels))};
    }
};

// Starts with more than one in so many of all edges are no longer spread along them: every node looks at its neighbours.
constexpr int64_t kManyStarts = 16;

// Whether the starts of query b have a large part of the edges.
template <class T>
static bool has_many_starts(const LayerArgs<T>& args, int64_t b) {
    const Graph& graph = args.graph;
    const int64_t enough = num_edges(graph) / kManyStarts;
    int64_t edges = 0;
    for (int64_t start = args.starts.offset[b]; start < args.starts.offset[b + 1] && edges <= enough; ++start) {
        const int64_t node = args.starts.node[start];
        edges += graph.group_ptr[graph.node_ptr[node + 1]] - graph.group_ptr[graph.node_ptr[node]];
    }
    return edges > enough && args.starts.offset[b + 1] - args.starts.offset[b] > 1;
}

// What the linear map makes of the boundary times each relation, a row for each; and, last, of a start's own state.
template <Algebra A, class T>
static void boundary_products(const LayerArgs<T>& args, int64_t b, const Scratch<T>& scratch, T* product) {
    constexpr int K = components(A);
    const int64_t types = args.graph.num_types, channels = args.channels, half = channels / K, width = padded<T>(channels);
    const T *boundary = args.boundary + b * channels, *relation = table_of(args, b);
    clear(scratch.zero, width);
    for (int64_t begin = 0; begin <= types; begin += kBlock) {
        const int64_t count = smaller(kBlock, types + 1 - begin), filled = (count + kRows - 1) / kRows * kRows;
        const T *x_rows[kBlock], *agg_rows[kBlock];
        for (int64_t i = 0; i < filled; ++i) {
            const bool is_start = begin + smaller(i, count - 1) == types;
            x_rows[i] = is_start ? boundary : scratch.zero;
            agg_rows[i] = is_start ? boundary : scratch.agg + smaller(i, count - 1) * width;
        }
        for (int64_t i = 0; i < count && begin + i < types; ++i) {
            const T* r = relation + (begin + i) * channels;
            T* row = scratch.agg + i * width;
            for (int64_t c = 0; c < half; ++c) {
                T acc[K] = {}, s[K], q[K];
                for (int k = 0; k < K; ++k) s[k] = boundary[c + k * half], q[k] = r[c + k * half];
                multiply_add<A, false>(acc, s, q);
                for (int k = 0; k < K; ++k) row[c + k * half] = acc[k];
            }
        }
        linear_rows(x_rows, agg_rows, filled, channels, channels, args.layer.packed, args.layer.packed + channels * width,
                    scratch.zero, channels, product + begin * width);
    }
}

// The first layer from many starts. All states are multiples of one row, the boundary: the messages of a group of edges are
// their summed weights times one product, and so is what the linear map makes of them. For an edge a number is read, not a
// row; for a group a row is added; nothing is multiplied by a matrix but the relations.
template <Algebra A, class T>
static void first_layer_of_many(const LayerArgs<T>& args, int64_t b, const Scratch<T>& scratch, const Noted<T>& noted) {
    const Graph& graph = args.graph;
    const int64_t channels = args.channels, width = padded<T>(channels);
    const T* boundary = args.boundary + b * channels;
    T *const out = args.out + b * graph.num_nodes * channels, *const weight = noted.weight;
    clear(weight, graph.num_nodes);
    for (int64_t start = args.starts.offset[b]; start < args.starts.offset[b + 1]; ++start)
        weight[args.starts.node[start]] = args.starts.weight ? args.starts.weight[start] : T(1);
    boundary_products<A>(args, b, scratch, noted.product);
    const Norm<T> norm{args.layer.norm_weight, args.layer.norm_bias, args.layer.eps};
    auto normalise = channels == 64 ? normalise_rows<64, T> : normalise_rows<0, T>;
    for (int64_t begin = 0; begin < graph.num_nodes; begin += kBlock) {
        const int64_t count = smaller(kBlock, graph.num_nodes - begin);
        const T* x_rows[kBlock];
        T *out_rows[kBlock], scale[kBlock];
        for (int64_t i = 0; i < count; ++i) {
            const int64_t node = begin + i;
            T *y = scratch.y + i * width, *x = scratch.x + i * width;
            for (int64_t c = 0; c < width; ++c) y[c] = args.layer.bias[c];
            add_scaled_row(y, weight[node], noted.product + graph.num_types * width, width);
            for (int64_t group = graph.node_ptr[node]; group < graph.node_ptr[node + 1]; ++group) {
                T sum = 0;
                for (int64_t edge = graph.group_ptr[group]; edge < graph.group_ptr[group + 1]; ++edge)
                    sum += weight[graph.neighbour[edge]];
                add_scaled_row(y, sum, noted.product + int64_t(graph.group_type[group]) * width, width);
            }
            for (int64_t c = 0; c < channels; ++c) x[c] = weight[node] * boundary[c];
            x_rows[i] = x, out_rows[i] = out + node * channels;
        }
        normalise(scratch.y, width, x_rows, norm, channels, count, out_rows, nullptr, scale);
    }
}

// The first layer: states are zero but for the boundary at the starts, so only these and their neighbours get messages.
// All other nodes get the same row.
template <Algebra A, class T>
static void first_layer_query(const LayerArgs<T>& args, int64_t b, const Scratch<T>& scratch, const Noted<T>& noted) {
    if (has_many_starts(args, b)) return first_layer_of_many<A>(args, b, scratch, noted);
    unsigned char* const touched = noted.touched;
    int64_t* const list = noted.list;
    constexpr int K = components(A);
    const Graph& graph = args.graph;
    const int64_t channels = args.channels, half = channels / K, width = padded<T>(channels);
    const int64_t first_of_b = args.starts.offset[b], starts = args.starts.offset[b + 1] - first_of_b;
    const int64_t* start_node = args.starts.node + first_of_b;
    const T* boundary = args.boundary + b * channels;
    auto weight = [&](int64_t start) { return args.starts.weight ? args.starts.weight[first_of_b + start] : T(1); };
    const T* relation = table_of(args, b);
    T* out = args.out + b * graph.num_nodes * channels;

    const Norm<T> norm{args.layer.norm_weight, args.layer.norm_bias, args.layer.eps};
    T* constant = scratch.y;
    const T* nothing = nullptr;
    T scale;
    normalise_rows<0, T>(args.layer.bias, channels, &nothing, norm, channels, 1, &constant, nullptr, &scale);

    // Who is touched: the starts, which come first in the list, and the ends of their edges, read from their own end.
    int64_t count = 0;
    auto touch = [&](int64_t node) {
        if (!touched[node]) {
            touched[node] = 1;
            list[count++] = node;
            for (int64_t c = 0; c < channels; ++c) out[node * channels + c] = 0;
        }
    };
    for (int64_t start = 0; start < starts; ++start) {
        touch(start_node[start]);
        add_scaled_row(out + start_node[start] * channels, weight(start), boundary, channels);
    }
    T* message = scratch.y + width;
    for (int64_t start = 0; start < starts; ++start) {
        const int64_t from = start_node[start];
        const T factor = weight(start);
        for (int64_t group = graph.node_ptr[from]; group < graph.node_ptr[from + 1]; ++group) {
            const T* r = relation + int64_t(graph.inverse[graph.group_type[group]]) * channels;
            for (int64_t c = 0; c < half; ++c) {
                T acc[K] = {}, s[K], q[K];
                for (int k = 0; k < K; ++k) s[k] = factor * boundary[c + k * half], q[k] = r[c + k * half];
                multiply_add<A, false>(acc, s, q);
                for (int k = 0; k < K; ++k) message[c + k * half] = acc[k];
            }
            for (int64_t edge = graph.group_ptr[group]; edge < graph.group_ptr[group + 1]; ++edge) {
                const int64_t node = graph.neighbour[edge];
                touch(node);
                add_row(out + node * channels, message, channels);
            }
        }
    }
    for (int64_t node = 0; node < graph.num_nodes; ++node)
        if (!touched[node])
            for (int64_t c = 0; c < channels; ++c) out[node * channels + c] = constant[c];

    // The rest of the layer for the touched, whose aggregates wait in `out`.
    for (int64_t first = 0; first < count; first += kBlock) {
        const T *x_rows[kBlock], *agg_rows[kBlock];
        T* out_rows[kBlock];
        const int64_t rows = smaller(kBlock, count - first);
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t node = list[first + i];
            x_rows[i] = scratch.zero;
            if (first + i < starts) {
                T* row = scratch.x + i * channels;
                for (int64_t c = 0; c < channels; ++c) row[c] = weight(first + i) * boundary[c];
                x_rows[i] = row;
            }
            agg_rows[i] = out_rows[i] = out + node * channels;
            touched[node] = 0;
        }
        update_rows(args, x_rows, agg_rows, out_rows, rows, scratch.y);
    }
}

template <class T>
static int64_t layer_bytes(const LayerArgs<T>& args) {
    Memory memory{0};
    if (!args.x) Noted<T>::in(memory, args.graph.num_nodes, args.graph.num_types, args.channels);
    Scratch<T>::in(memory, args.channels);
    return int64_t(memory.at);
}

template <Algebra A, class T>
static void run_first_layer(const LayerArgs<T>& args) {
    const int64_t nodes = args.graph.num_nodes;
#pragma omp parallel num_threads(args.threads) if (args.threads > 1 && args.queries > 1)
    {
        const int thread = thread_number();
        Memory memory = memory_of(args.work, thread);
        const Noted<T> noted = Noted<T>::in(memory, nodes, args.graph.num_types, args.channels);
        const Scratch<T> scratch = Scratch<T>::in(memory, args.channels);
        clear(noted.touched, nodes);
        clear(scratch.zero, args.channels);
        for (int64_t b; (b = take_unit(*args.units, thread)) >= 0;) first_layer_query<A>(args, b, scratch, noted);
    }
}

template <class T>
static void layer(const LayerArgs<T>& args) {
    switch (args.algebra) {
        case Algebra::real: return args.x ? run_layer<Algebra::real>(args) : run_first_layer<Algebra::real>(args);
        case Algebra::complex: return args.x ? run_layer<Algebra::complex>(args) : run_first_layer<Algebra::complex>(args);
        case Algebra::split_complex:
            return args.x ? run_layer<Algebra::split_complex>(args) : run_first_layer<Algebra::split_complex>(args);
        case Algebra::dual: return args.x ? run_layer<Algebra::dual>(args) : run_first_layer<Algebra::dual>(args);
    }
}

template <class T>
static void pack_layer(const T* weight, const T* bias, int64_t channels, T* packed, T* padded_bias) {
    pack_centred(weight, channels, channels, 2 * channels, packed);
    pack_centred(weight + channels, channels, channels, 2 * channels, packed + channels * padded<T>(channels));
    pack_centred(bias, channels, int64_t(1), int64_t(1), padded_bias);  // the weights of an input that is always one
}

template <class T>
static int64_t padded_width(int64_t columns) {
    return padded<T>(columns);
}

}  // namespace GAMMA_ISA_NAMESPACE
