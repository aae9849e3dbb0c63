// Whole layers at the border: of a graph, of many neighbourhoods, and the backward pass of a layer's update.
#include "border.h"

namespace gamma_kg {

namespace {

// Weight, bias, norm weight and norm bias of a layer, then its relation tables: one [R, D] after the other, each where it was
// made, or all of them [U, R, D].
template <class T>
using LayerArrays = std::vector<Array<const T>>;

constexpr size_t kFirstTable = 4;

template <class T>
int64_t num_tables(const LayerArrays<T>& layer) {
    const bool side_by_side = layer.size() == kFirstTable + 1 && layer[kFirstTable].ndim() == 3;
    return side_by_side ? int64_t(layer[kFirstTable].shape(0)) : int64_t(layer.size()) - int64_t(kFirstTable);
}

// The layers as kernels take them: what a thread reads again and again is packed.
template <class T>
struct PackedLayers {
    std::vector<T> packed;
    std::vector<const T*> tables;
    std::vector<LayerWeights<T>> layers;

    PackedLayers(const Graph& graph, int64_t channels, const std::vector<LayerArrays<T>>& arrays,
                 const std::vector<double>& eps) {
        if (arrays.empty() || arrays.size() != eps.size()) throw nb::value_error("a number eps for each of at least one layer");
        const int64_t width = kernels<T>().padded(channels), one = (2 * channels + 1) * width;
        packed.resize(arrays.size() * one);
        const int64_t count = num_tables(arrays[0]);
        tables.reserve(arrays.size() * size_t(std::max<int64_t>(count, 0)));  // layers point into it
        for (size_t i = 0; i < arrays.size(); ++i) {
            const LayerArrays<T>& layer = arrays[i];
            if (layer.size() <= kFirstTable) throw nb::value_error("four arrays and a relation table make a layer");
            want(layer[0], "weight", {channels, 2 * channels});
            want(layer[1], "bias", {channels});
            want(layer[2], "norm weight", {channels});
            want(layer[3], "norm bias", {channels});
            add_tables(layer, count, graph.num_types, channels);
            T *weight = packed.data() + i * one, *bias = weight + 2 * channels * width;
            kernels<T>().pack_layer(layer[0].data(), layer[1].data(), channels, weight, bias);
            layers.push_back({tables.data() + i * size_t(count), weight, bias, layer[2].data(), layer[3].data(), T(eps[i])});
        }
    }

    // As many as the first layer has: queries name them by one number for all layers.
    void add_tables(const LayerArrays<T>& layer, int64_t count, int64_t types, int64_t channels) {
        if (layer.size() == kFirstTable + 1 && layer[kFirstTable].ndim() == 3) {
            want(layer[kFirstTable], "relation tables", {count, types, channels});
            for (int64_t u = 0; u < count; ++u) tables.push_back(layer[kFirstTable].data() + u * types * channels);
            return;
        }
        if (num_tables(layer) != count) throw nb::value_error("every layer must have as many relation tables as the first");
        for (size_t u = kFirstTable; u < layer.size(); ++u) {
            want(layer[u], "relation table", {types, channels});
            tables.push_back(layer[u].data());
        }
    }
};

// Ids that are inside their arrays are the caller's promise (`are_starts`, `are_below`); lengths are looked at here.
template <class T>
Starts<T> starts_of(int64_t queries, const Ids& offset, const Ids& node, const Array<const T>& weight) {
    want(offset, "offsets of the starts", {queries + 1});
    want(node, "starts", {-1});
    if (weight.is_valid()) want(weight, "weights of the starts", {int64_t(node.shape(0))});
    return {offset.data(), node.data(), address(weight)};
}

// States of the queries that go through all layers together, for each thread: about its second cache. With eight times as much
// a batch of small queries takes a quarter longer.
constexpr int64_t kCacheBytes = 2 << 20;

int64_t few_queries(int64_t bytes, int64_t queries, int threads) {
    return std::clamp<int64_t>(std::max(threads, 1) * kCacheBytes / std::max<int64_t>(bytes, 1), 1, std::max<int64_t>(queries, 1));
}

// Layers one after the other, each on the states that the one before wrote; only the last result is whole. `saved`: nothing, or where aggregates, normalised
// values and scales of a single layer go.
template <class T>
void layers(const Graph& graph, int algebra, Array<const T> x, Ids which, Ids start_offset, Ids start_node,
            Array<const T> start_weight, Array<const T> boundary, std::vector<LayerArrays<T>> arrays, std::vector<double> eps,
            std::vector<Array<T>> results, std::vector<Array<T>> saved, bool through_nodes, int threads) {
    want(boundary, "boundary", {-1, -1});
    const int64_t queries = int64_t(boundary.shape(0)), channels = int64_t(boundary.shape(1)), nodes = graph.num_nodes;
    if (x.is_valid()) want(x, "states", {queries, nodes, channels});
    if (which.is_valid()) want(which, "which", {queries});
    const Starts<T> starts = starts_of<T>(queries, start_offset, start_node, start_weight);
    if (results.size() != arrays.size() || results.empty()) throw nb::value_error("a result for each of at least one layer");
    for (const auto& result : results) want(result, "result", {queries, nodes, channels});
    if (!saved.empty()) {
        if (saved.size() != 3 || results.size() != 1) throw nb::value_error("three arrays are saved, of a single layer");
        want(saved[0], "aggregates", {queries, nodes, channels});
        want(saved[1], "normalised values", {queries, nodes, channels});
        want(saved[2], "scales", {queries, nodes});
    }
    const PackedLayers<T> packed(graph, channels, arrays, eps);
    nb::gil_scoped_release release;
    const int64_t parts = forward_parts(graph, channels), stride = nodes * channels;
    const int64_t few = saved.empty() ? few_queries(2 * stride * int64_t(sizeof(T)), queries, threads) : queries;
    std::unique_ptr<T[]> pieces(new T[2 * few * parts * channels]);
    std::vector<Cut> cuts(parts + 1);
    cut_evenly(graph, layer_node_cost(channels), parts, cuts.data(), through_nodes);
    // All layers for a few queries, whose states stay in cache, then the next few: between the layers they take the place of those
    // before them.
    for (int64_t first = 0; first < queries; first += few) {
        const int64_t count = std::min(few, queries - first);
        const T* states = x.is_valid() ? x.data() + first * stride : nullptr;
        for (size_t i = 0; i < results.size(); ++i) {
            T* const result = results[i].data() + (i + 1 < results.size() ? 0 : first * stride);
            Units units(states ? count * parts : count, threads);
            LayerArgs<T> args{graph,
                              Algebra(algebra),
                              count,
                              channels,
                              states,
                              which.is_valid() ? which.data() + first : nullptr,
                              {starts.offset + first, starts.node, starts.weight},
                              boundary.data() + first * channels,
                              packed.layers[i],
                              result,
                              parts,
                              cuts.data(),
                              pieces.get(),
                              pieces.get() + count * parts * channels,
                              threads,
                              &units,
                              {},
                              saved.empty() ? nullptr : saved[0].data(),
                              saved.empty() ? nullptr : saved[1].data(),
                              saved.empty() ? nullptr : saved[2].data()};
            const Work work(0, kernels<T>().layer_bytes(args), threads);
            args.work = work.space();
            kernels<T>().layer(args);
            states = result;
        }
    }
}

// All layers of many small graphs side by side; the nodes of query b are offset[b] .. offset[b + 1]. False if an edge or a start
// leaves the graph of its query.
template <class T>
bool neighbourhoods(const Graph& graph, int algebra, Ids offset, Ids which, Ids start_offset, Ids start_node,
                    Array<const T> start_weight, Array<const T> boundary, std::vector<LayerArrays<T>> arrays,
                    std::vector<double> eps, Array<T> out, int threads) {
    want(boundary, "boundary", {-1, -1});
    const int64_t queries = int64_t(boundary.shape(0)), channels = int64_t(boundary.shape(1));
    want(offset, "offsets", {queries + 1});
    if (which.is_valid()) want(which, "which", {queries});
    want(out, "result", {graph.num_nodes, channels});
    const Starts<T> starts = starts_of<T>(queries, start_offset, start_node, start_weight);
    const PackedLayers<T> packed(graph, channels, arrays, eps);
    nb::gil_scoped_release release;
    int64_t most_nodes = 0, most_groups = 0, most_edges = 0, most_starts = 0;
    for (int64_t b = 0; b < queries; ++b) {
        const int64_t first = graph.node_ptr[offset.data()[b]], last = graph.node_ptr[offset.data()[b + 1]];
        most_nodes = std::max(most_nodes, offset.data()[b + 1] - offset.data()[b]);
        most_groups = std::max(most_groups, last - first);
        most_edges = std::max(most_edges, graph.group_ptr[last] - graph.group_ptr[first]);
        most_starts = std::max(most_starts, starts.offset[b + 1] - starts.offset[b]);
    }
    std::vector<unsigned char> sound(queries, 1);
    Units units(queries, threads);
    NeighbourhoodArgs<T> args{graph,
                              Algebra(algebra),
                              queries,
                              channels,
                              offset.data(),
                              address(which),
                              starts,
                              boundary.data(),
                              packed.layers.data(),
                              int64_t(packed.layers.size()),
                              out.data(),
                              most_nodes,
                              most_groups,
                              most_edges,
                              most_starts,
                              sound.data(),
                              threads,
                              &units,
                              {}};
    const Work work(0, kernels<T>().neighbourhood_bytes(args), threads);
    args.work = work.space();
    kernels<T>().neighbourhoods(args);
    return std::all_of(sound.begin(), sound.end(), [](unsigned char is_sound) { return is_sound != 0; });
}

template <class T>
void update_backward(Array<const T> gradient, Array<const T> normalised, Array<const T> scale, Array<const T> weight,
                     Array<const T> norm_weight, Array<const T> norm_bias, Array<T> linear_gradient, Array<T> x_gradient,
                     Array<T> agg_gradient, Array<T> sums, int threads) {
    want(gradient, "gradient", {-1, -1});
    const int64_t rows = int64_t(gradient.shape(0)), channels = int64_t(gradient.shape(1));
    want(normalised, "normalised values", {rows, channels});
    want(scale, "scales", {rows});
    want(weight, "weight", {channels, 2 * channels});
    want(norm_weight, "norm weight", {channels});
    want(norm_bias, "norm bias", {channels});
    for (const auto& result : {linear_gradient, x_gradient, agg_gradient}) want(result, "result", {rows, channels});
    want(sums, "sums", {-1, 3, channels});
    nb::gil_scoped_release release;
    const int64_t width = kernels<T>().padded(2 * channels), parts = int64_t(sums.shape(0));
    std::vector<T> packed((channels + 1) * width);
    kernels<T>().pack_transposed(weight.data(), channels, packed.data());
    Units units(parts, threads);
    UpdateBackwardArgs<T> args{rows,
                               channels,
                               gradient.data(),
                               normalised.data(),
                               scale.data(),
                               packed.data(),
                               packed.data() + channels * width,
                               norm_weight.data(),
                               norm_bias.data(),
                               linear_gradient.data(),
                               x_gradient.data(),
                               agg_gradient.data(),
                               sums.data(),
                               parts,
                               threads,
                               &units,
                               {}};
    const Work work(0, kernels<T>().update_backward_bytes(args), threads);
    args.work = work.space();
    kernels<T>().update_backward(args);
}

template <class T>
void define(nb::module_& module) {
    const auto exact = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    module.def("layers", &layers<T>, nb::arg(), nb::arg(), maybe, maybe, exact, exact, maybe, exact, exact, nb::arg(), exact,
               exact, nb::arg(), nb::arg());
    module.def("neighbourhoods", &neighbourhoods<T>, nb::arg(), nb::arg(), exact, maybe, exact, exact, maybe, exact, exact,
               nb::arg(), exact, nb::arg());
    module.def("update_backward", &update_backward<T>, exact, exact, exact, exact, exact, exact, exact, exact, exact, exact,
               nb::arg());
}

}  // namespace

void define_layers(nb::module_& module) {
    define<float>(module);
    define<double>(module);
}

}  // namespace gamma_kg
