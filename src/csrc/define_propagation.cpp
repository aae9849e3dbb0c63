// Propagation at the border, forward and backward.
#include "border.h"

namespace gamma_kg {

namespace {

// The arguments that both passes share, and what they point to.
template <class T>
struct Pass {
    std::vector<Cut> cuts;
    std::unique_ptr<T[]> rest;
    Units units;
    PropagateArgs<T> args;

    Pass(const Graph& graph, int algebra, const Array<const T>& x, const Array<const T>& relation, const Array<T>& out,
         int64_t parts, int threads)
        : cuts(parts + 1),
          rest(new T[x.shape(0) * parts * x.shape(2)]),
          units(int64_t(x.shape(0)) * parts, threads),
          args{graph,
               Algebra(algebra),
               int64_t(x.shape(0)),
               int64_t(x.shape(2)),
               x.data(),
               relation.data(),
               relation.shape(0) == 1 ? 0 : int64_t(relation.shape(1) * relation.shape(2)),
               out.data(),
               parts,
               cuts.data(),
               rest.get(),
               threads,
               &units} {
        cut_evenly(graph, kNodeCost, parts, cuts.data());
    }
};

// Refuse what does not fit together; the number of queries.
template <class T>
int64_t want_inputs(const Graph& graph, const Array<const T>& x, const Array<const T>& relation) {
    want(x, "states", {-1, graph.num_nodes, -1});
    const int64_t queries = int64_t(x.shape(0));
    const bool shares = relation.ndim() == 3 && relation.shape(0) == 1;
    want(relation, "relations", {shares ? 1 : queries, graph.num_types, int64_t(x.shape(2))});
    return queries;
}

template <class T>
void propagate(const Graph& graph, int algebra, Array<const T> x, Array<const T> relation, Array<T> out, int threads) {
    const int64_t queries = want_inputs(graph, x, relation), channels = int64_t(x.shape(2));
    want(out, "result", {queries, graph.num_nodes, channels});
    nb::gil_scoped_release release;
    Pass<T> pass(graph, algebra, x, relation, out, forward_parts(graph, channels), threads);
    kernels<T>().propagate(pass.args);
}

// `tables` has room for the relations' gradients of every part, zeroed; see `backward_parts`.
template <class T>
void propagate_backward(const Graph& graph, int algebra, Array<const T> gradient, Array<const T> relation, Array<const T> states,
                        Array<T> out, Array<T> tables, bool accumulate, int threads) {
    const int64_t queries = want_inputs(graph, gradient, relation), channels = int64_t(gradient.shape(2));
    want(states, "states", {queries, graph.num_nodes, channels});
    want(out, "result", {queries, graph.num_nodes, channels});
    want(tables, "tables", {queries, -1, graph.num_types, channels});
    nb::gil_scoped_release release;
    Pass<T> pass(graph, algebra, gradient, relation, out, int64_t(tables.shape(1)), threads);
    pass.args.accumulate = accumulate;
    kernels<T>().backward({pass.args, states.data(), tables.data()});
}

template <class T>
void define(nb::module_& module) {
    const auto exact = nb::arg().noconvert();
    module.def("propagate", &propagate<T>, nb::arg(), nb::arg(), exact, exact, exact, nb::arg());
    module.def("propagate_backward", &propagate_backward<T>, nb::arg(), nb::arg(), exact, exact, exact, exact, exact, nb::arg(),
               nb::arg());
}

}  // namespace

void define_propagation(nb::module_& module) {
    module.def("backward_parts", &backward_parts);
    module.def("forward_parts", &forward_parts);
    define<float>(module);
    define<double>(module);
}

}  // namespace gamma_kg
