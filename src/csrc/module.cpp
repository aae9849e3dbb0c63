// Python face of the kernels. Arrays arrive as addresses: gamma_kg.kernels.native owns every check of type, shape and
// layout, and keeps the tensors alive during the call. The GIL is released while a kernel runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <climits>
#include <memory>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "neighbourhood_face.h"
#include "units.h"

namespace nb = nanobind;
using namespace gamma_kg;

namespace {

const Kernels* chosen = best_kernels();

template <class P>
P* at(uintptr_t address) {
    return reinterpret_cast<P*>(address);
}

Graph graph_at(int64_t num_nodes, int64_t num_types, const std::vector<uintptr_t>& arrays) {
    return {num_nodes,
            num_types,
            at<const int64_t>(arrays[0]),
            at<const int32_t>(arrays[1]),
            at<const int64_t>(arrays[2]),
            at<const int32_t>(arrays[3]),
            at<const int32_t>(arrays[4])};
}

// The arguments both passes share; `cuts` and `carry` are theirs for the time of the call.
template <class T>
struct Work {
    std::vector<Cut> cuts;
    std::unique_ptr<T[]> carry;
    Units units;
    PropagateArgs<T> args;

    Work(const Graph& graph, int algebra, int64_t queries, int64_t channels, uintptr_t x, uintptr_t relation,
         int64_t relation_stride, uintptr_t out, int64_t parts, int threads)
        : cuts(parts + 1),
          carry(new T[queries * parts * channels]),
          units(queries * parts, threads),
          args{graph, Algebra(algebra), queries, channels, at<const T>(x), at<const T>(relation), relation_stride, at<T>(out),
               parts, cuts.data(), carry.get(), threads, &units} {
        cut_evenly(graph, kNodeCost, parts, cuts.data());
    }
};

template <class T>
void propagate(const Graph& graph, int algebra, int64_t queries, int64_t channels, uintptr_t x, uintptr_t relation,
               int64_t relation_stride, uintptr_t out, int threads) {
    nb::gil_scoped_release release;
    const int64_t parts = parts_per_query(graph, queries, channels, threads, kForwardUnits);
    Work<T> work(graph, algebra, queries, channels, x, relation, relation_stride, out, parts, threads);
    chosen->of<T>().propagate(work.args);
}

template <class T>
void propagate_backward(const Graph& graph, int algebra, int64_t queries, int64_t channels, uintptr_t gradient,
                        uintptr_t relation, int64_t relation_stride, uintptr_t out, int64_t parts, int threads,
                        uintptr_t states, uintptr_t relation_gradient, bool accumulate) {
    nb::gil_scoped_release release;
    Work<T> work(graph, algebra, queries, channels, gradient, relation, relation_stride, out, parts, threads);
    work.args.accumulate = accumulate;
    chosen->of<T>().backward({work.args, at<const T>(states), at<T>(relation_gradient)});
}

// Layers one after the other, each on the states that the one before wrote. `stages`: for each layer the addresses of its
// relation tables, weight, bias, norm weight, norm bias and result.
template <class T>
void layers(const Graph& graph, int algebra, int64_t queries, int64_t channels, uintptr_t x, uintptr_t which,
            uintptr_t start_offset, uintptr_t start_node, uintptr_t start_weight, uintptr_t boundary, std::vector<std::vector<uintptr_t>> stages, std::vector<double> eps, int threads, uintptr_t agg,
            uintptr_t normalised, uintptr_t scale) {
    for (const auto& stage : stages)
        if (stage.size() != 6 || stages.size() != eps.size()) throw nb::value_error("six arrays and a number make a layer");
    nb::gil_scoped_release release;
    const int64_t parts = parts_per_query(graph, queries, channels, threads, kForwardUnits);
    const LayerKernels<T>& kernels = chosen->of<T>();
    const int64_t width = kernels.padded(channels);
    std::vector<T> packed((2 * channels + 1) * width), pieces(2 * queries * parts * channels);
    T* padded_bias = packed.data() + 2 * channels * width;
    std::vector<Cut> cuts(parts + 1);
    cut_evenly(graph, layer_node_cost(channels), parts, cuts.data());
    for (size_t i = 0; i < stages.size(); ++i) {
        const std::vector<uintptr_t>& stage = stages[i];
        Units units(x ? queries * parts : queries, threads);
        kernels.pack_layer(at<const T>(stage[1]), at<const T>(stage[2]), channels, packed.data(), padded_bias);
        kernels.layer({graph, Algebra(algebra), queries, channels, at<const T>(x), at<const T>(stage[0]),
                       at<const int64_t>(which),
                       {at<const int64_t>(start_offset), at<const int64_t>(start_node), at<const T>(start_weight)},
                       at<const T>(boundary), packed.data(), padded_bias,
                       at<const T>(stage[3]), at<const T>(stage[4]), T(eps[i]), at<T>(stage[5]), parts, cuts.data(),
                       pieces.data(), pieces.data() + queries * parts * channels, threads, &units, at<T>(agg),
                       at<T>(normalised), at<T>(scale)});
        x = stage[5];
    }
}

template <class T>
void update_backward(int64_t rows, int64_t channels, uintptr_t gradient, uintptr_t normalised, uintptr_t scale,
                     uintptr_t weight, uintptr_t norm_weight, uintptr_t norm_bias, uintptr_t linear_gradient,
                     uintptr_t x_gradient, uintptr_t agg_gradient, uintptr_t sums, int64_t units, int threads) {
    nb::gil_scoped_release release;
    const LayerKernels<T>& kernels = chosen->of<T>();
    const int64_t width = kernels.padded(2 * channels);
    std::vector<T> packed((channels + 1) * width);
    T* zeros = packed.data() + channels * width;
    kernels.pack_transposed(at<const T>(weight), channels, packed.data());
    kernels.update_backward({rows, channels, at<const T>(gradient), at<const T>(normalised), at<const T>(scale),
                             packed.data(), zeros, at<const T>(norm_weight), at<const T>(norm_bias), at<T>(linear_gradient),
                             at<T>(x_gradient), at<T>(agg_gradient), at<T>(sums), units, threads});
}

template <class T>
void score(std::vector<int64_t> sizes, std::vector<uintptr_t> states, int64_t query_stride, uintptr_t key_weight,
           uintptr_t key_query, uintptr_t context, double temperature, double mix, uintptr_t weight, uintptr_t hidden_weight,
           uintptr_t hidden_query, uintptr_t hidden_bias, uintptr_t out_weight, double out_bias, uintptr_t score,
           uintptr_t branch_weight, int threads) {
    if (sizes.size() != 6 || int64_t(states.size()) != sizes[2]) throw nb::value_error("sizes do not fit");
    nb::gil_scoped_release release;
    std::vector<const T*> pointers;
    for (uintptr_t address : states) pointers.push_back(at<const T>(address));
    chosen->of<T>().score({sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], pointers.data(), query_stride,
                           at<const T>(key_weight), at<const T>(key_query), at<const T>(context), T(temperature), T(mix),
                           at<const T>(weight), at<const T>(hidden_weight), at<const T>(hidden_query),
                           at<const T>(hidden_bias), at<const T>(out_weight), T(out_bias), at<T>(score),
                           at<T>(branch_weight), threads});
}

// True if every pointer and id stays inside its array, so that no kernel can read or write elsewhere.
bool is_sound(const Graph& graph, int64_t groups, int64_t edges) {
    nb::gil_scoped_release release;
    if (graph.node_ptr[0] != 0 || graph.node_ptr[graph.num_nodes] != groups) return false;
    if (graph.group_ptr[0] != 0 || graph.group_ptr[groups] != edges) return false;
    for (int64_t n = 0; n < graph.num_nodes; ++n)
        if (graph.node_ptr[n] > graph.node_ptr[n + 1]) return false;
    for (int64_t g = 0; g < groups; ++g)
        if (graph.group_ptr[g] > graph.group_ptr[g + 1] || graph.group_type[g] < 0 || graph.group_type[g] >= graph.num_types)
            return false;
    for (int64_t t = 0; t < graph.num_types; ++t)
        if (graph.inverse[t] < 0 || graph.inverse[t] >= graph.num_types) return false;
    bool inside = true;
    for (int64_t e = 0; e < edges; ++e) inside &= graph.neighbour[e] >= 0 && graph.neighbour[e] < graph.num_nodes;
    return inside;
}

bool are_below(uintptr_t ids, int64_t count, int64_t limit) {
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) inside &= at<const int64_t>(ids)[i] >= 0 && at<const int64_t>(ids)[i] < limit;
    return inside;
}

// True if the offsets divide the starts among the queries, and the nodes of each query are ascending and inside the graph.
bool are_starts(uintptr_t node, int64_t count, uintptr_t offset, int64_t num_offsets, int64_t num_nodes) {
    const int64_t *nodes = at<const int64_t>(node), *offsets = at<const int64_t>(offset);
    if (num_offsets < 1 || offsets[0] != 0 || offsets[num_offsets - 1] != count) return false;
    for (int64_t b = 0; b + 1 < num_offsets; ++b)
        if (offsets[b] > offsets[b + 1]) return false;
    for (int64_t b = 0; b + 1 < num_offsets; ++b)
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i)
            if (nodes[i] < (i > offsets[b] ? nodes[i - 1] + 1 : 0) || nodes[i] >= num_nodes) return false;
    return true;
}

// Ask the allocator to keep what is freed instead of handing it back: a training step frees and takes the same large
// blocks again and again, and every fresh page costs a trap and a clearing. False where the allocator can't be asked.
bool retain_freed_memory() {
#if defined(__GLIBC__)
    return mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, INT_MAX) && mallopt(M_TOP_PAD, 64 << 20);
#else
    return false;
#endif
}

// Ask for large pages before the memory is first written: rows gathered at random from a large table otherwise miss the
// table of pages nearly every time. A wish only; where the system does not know it nothing happens.
void wish_large_pages(uintptr_t address, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = 4096, begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
    if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)address, (void)bytes;
#endif
}

bool use_isa(const std::string& name) {
    const Kernels* kernels = kernels_named(name.c_str());
    if (kernels) chosen = kernels;
    return kernels != nullptr;
}

template <class T>
void define_kernels(nb::module_& module, const std::string& suffix) {
    module.def(("propagate" + suffix).c_str(), &propagate<T>);
    module.def(("propagate_backward" + suffix).c_str(), &propagate_backward<T>);
    module.def(("layers" + suffix).c_str(), &layers<T>);
    module.def(("update_backward" + suffix).c_str(), &update_backward<T>);
    module.def(("score" + suffix).c_str(), &score<T>);
}

}  // namespace

NB_MODULE(_native, module) {
    nb::class_<Graph>(module, "Graph").def(
        "__init__",
        [](Graph* self, int64_t num_nodes, int64_t num_types, std::vector<uintptr_t> arrays) {
            if (arrays.size() != 5) throw nb::value_error("five arrays make a graph");
            new (self) Graph(graph_at(num_nodes, num_types, arrays));
        })
        .def_ro("num_nodes", &Graph::num_nodes)
        .def_ro("num_types", &Graph::num_types);
    module.def("isa", [] { return chosen->name; });
    module.def("use_isa", &use_isa);
    module.def("has_threads", [] {
#if defined(_OPENMP)
        return true;
#else
        return false;
#endif
    });
    module.def("retain_freed_memory", &retain_freed_memory);
    module.def("release_freed_memory", [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    });
    module.def("wish_large_pages", &wish_large_pages);
    module.def("backward_parts", [](const Graph& graph, int64_t queries, int64_t channels, int threads) {
        return parts_per_query(graph, queries, channels, threads, kBackwardUnits);
    });
    module.def("is_sound", &is_sound);
    module.def("are_below", &are_below);
    module.def("are_starts", &are_starts);
    module.def("renumber", [](const Graph& graph, std::vector<uintptr_t> to) {
        if (to.size() != 5) throw nb::value_error("five arrays make a renumbered graph");
        nb::gil_scoped_release release;
        renumber(graph, {at<int32_t>(to[0]), at<int64_t>(to[1]), at<int32_t>(to[2]), at<int64_t>(to[3]), at<int32_t>(to[4])});
    });
    define_kernels<float>(module, "_f32");
    define_kernels<double>(module, "_f64");
    define_neighbourhoods(module);
}
