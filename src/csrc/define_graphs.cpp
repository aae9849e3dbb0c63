// Graphs at the border: arrays that were looked through once, so that no kernel can read or write elsewhere.
#include "border.h"

namespace gamma_kg {

namespace {

// The arrays, which must outlive the graph: `gamma_kg.kernels.native.edge_arrays` keeps them.
Graph graph_of(const Ids& node_ptr, const Array<const int32_t>& group_type, const Ids& group_ptr,
               const Array<const int32_t>& neighbour, const Array<const int32_t>& inverse) {
    want(node_ptr, "node_ptr", {-1});
    want(group_type, "group_type", {-1});
    want(neighbour, "neighbour", {-1});
    want(inverse, "inverse", {-1});
    if (node_ptr.shape(0) == 0) throw nb::value_error("node_ptr: wanted one more than there are nodes, found none");
    want(group_ptr, "group_ptr", {int64_t(group_type.shape(0)) + 1});
    return {int64_t(node_ptr.shape(0)) - 1,
            int64_t(inverse.shape(0)),
            node_ptr.data(),
            group_type.data(),
            group_ptr.data(),
            neighbour.data(),
            inverse.data()};
}

// True if every pointer and id stays inside its array.
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

bool are_below(const Ids& ids, int64_t limit) {
    bool inside = true;
    for (size_t i = 0; i < ids.size(); ++i) inside &= ids.data()[i] >= 0 && ids.data()[i] < limit;
    return inside;
}

// True if these numbers never fall, begin with 0 and end with `last`: they divide `last` things.
bool are_offsets(const Ids& ids, int64_t last) {
    const int64_t *offset = ids.data(), count = int64_t(ids.size());
    if (ids.ndim() != 1 || count < 1 || offset[0] != 0 || offset[count - 1] != last) return false;
    for (int64_t i = 0; i + 1 < count; ++i)
        if (offset[i] > offset[i + 1]) return false;
    return true;
}

// True if the offsets divide the starts among the queries, and the nodes of each query are ascending and inside the graph.
bool are_starts(const Ids& node, const Ids& offset, int64_t num_nodes) {
    if (node.ndim() != 1 || !are_offsets(offset, int64_t(node.size()))) return false;
    const int64_t *nodes = node.data(), *offsets = offset.data();
    for (size_t b = 0; b + 1 < offset.size(); ++b)
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i)
            if (nodes[i] < (i > offsets[b] ? nodes[i - 1] + 1 : 0) || nodes[i] >= num_nodes) return false;
    return true;
}

}  // namespace

void define_graphs(nb::module_& module) {
    nb::class_<Graph>(module, "Graph")
        .def(
            "__init__",
            [](Graph* self, const Ids& node_ptr, const Array<const int32_t>& group_type, const Ids& group_ptr,
               const Array<const int32_t>& neighbour, const Array<const int32_t>& inverse) {
                new (self) Graph(graph_of(node_ptr, group_type, group_ptr, neighbour, inverse));
            },
            nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert())
        .def_ro("num_nodes", &Graph::num_nodes)
        .def_ro("num_types", &Graph::num_types);
    module.def("is_sound", &is_sound);
    module.def("are_below", &are_below, nb::arg().noconvert(), nb::arg());
    module.def("are_offsets", &are_offsets, nb::arg().noconvert(), nb::arg());
    module.def("are_starts", &are_starts, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg());
    module.def("renumber", [](const Graph& graph, Array<int32_t> place, Array<int64_t> node_ptr, Array<int32_t> group_type,
                              Array<int64_t> group_ptr, Array<int32_t> neighbour) {
        const int64_t groups = graph.node_ptr[graph.num_nodes];
        want(place, "place", {graph.num_nodes});
        want(node_ptr, "node_ptr", {graph.num_nodes + 1});
        want(group_type, "group_type", {groups});
        want(group_ptr, "group_ptr", {groups + 1});
        want(neighbour, "neighbour", {graph.group_ptr[groups]});
        nb::gil_scoped_release release;
        renumber(graph, {place.data(), node_ptr.data(), group_type.data(), group_ptr.data(), neighbour.data()});
    });
}

}  // namespace gamma_kg
