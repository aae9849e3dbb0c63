// Python face of the growth of neighbourhoods. Arrays come and go as ndarrays; the GIL is released while it works.
#include "neighbourhood_face.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <exception>
#include <memory>

#include "neighbourhood.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace nb = nanobind;

namespace gamma_kg {

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Out<T> handed_over(std::vector<T>&& values) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    std::vector<T>* kept = owned.release();
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(kept->data(), {kept->size()}, owner);
}

// All neighbourhoods as one graph: places of one follow those of the one before.
struct Union {
    std::vector<int64_t> offset, entity, node_ptr, group_ptr;
    std::vector<int32_t> group_type, neighbour;

    explicit Union(const std::vector<Neighbourhood>& parts) {
        size_t nodes = 0, groups = 0, edges = 0;
        for (const Neighbourhood& part : parts)
            nodes += part.node.size(), groups += part.group_type.size(), edges += part.neighbour.size();
        offset.reserve(parts.size() + 1), entity.reserve(nodes), node_ptr.reserve(nodes + 1), group_ptr.reserve(groups + 1);
        group_type.reserve(groups), neighbour.reserve(edges);
        offset.push_back(0), node_ptr.push_back(0), group_ptr.push_back(0);
        for (const Neighbourhood& part : parts) {
            const int64_t place = offset.back(), group = int64_t(group_type.size()), edge = int64_t(neighbour.size());
            entity.insert(entity.end(), part.node.begin(), part.node.end());
            for (int64_t end : part.group_end) node_ptr.push_back(group + end);
            group_type.insert(group_type.end(), part.group_type.begin(), part.group_type.end());
            for (int64_t end : part.edge_end) group_ptr.push_back(edge + end);
            for (int32_t other : part.neighbour) neighbour.push_back(int32_t(place + other));
            offset.push_back(place + int64_t(part.node.size()));
        }
    }
};

using Arrays = std::tuple<Out<int64_t>, Out<int64_t>, Out<int64_t>, Out<int32_t>, Out<int64_t>, Out<int32_t>>;

Arrays grow(In<int64_t> node_ptr, In<int32_t> group_type, In<int64_t> group_ptr, In<int32_t> neighbour, In<int32_t> inverse,
            In<int64_t> start, In<double> weight, In<int64_t> start_ptr, int64_t triples, double restart, int threads) {
    const int64_t nodes = int64_t(node_ptr.size()) - 1, groups = int64_t(group_type.size()),
                  queries = int64_t(start_ptr.size()) - 1;
    if (nodes < 0 || queries < 0 || int64_t(group_ptr.size()) != groups + 1 || start.size() != weight.size())
        throw nb::value_error("sizes do not fit");
    const int64_t* bounds = start_ptr.data();
    for (int64_t q = 0; q < queries; ++q)
        if (bounds[q] < 0 || bounds[q] > bounds[q + 1] || bounds[q + 1] > int64_t(start.size()))
            throw nb::value_error("starts are out of range");
    for (size_t i = 0; i < start.size(); ++i)
        if (start.data()[i] < 0 || start.data()[i] >= nodes) throw nb::value_error("a start is no node of the graph");
    const Graph graph{
        nodes, int64_t(inverse.size()), node_ptr.data(), group_type.data(), group_ptr.data(), neighbour.data(), inverse.data()};
    const Growth growth{triples, restart};
    std::unique_ptr<Union> all;
    {
        nb::gil_scoped_release release;
        std::vector<Neighbourhood> parts(queries);
        std::exception_ptr failure;
#pragma omp parallel num_threads(threads) if (threads > 1 && queries > 1)
        {
            thread_local Grower grower;
#pragma omp for schedule(dynamic)
            for (int64_t q = 0; q < queries; ++q) {
                try {
                    grower.grow(graph, groups, int64_t(neighbour.size()), start.data() + bounds[q], weight.data() + bounds[q],
                                bounds[q + 1] - bounds[q], growth, parts[q]);
                } catch (...) {
#pragma omp critical
                    failure = std::current_exception();
                }
            }
        }
        if (failure) std::rethrow_exception(failure);
        all = std::make_unique<Union>(parts);
    }
    return {handed_over(std::move(all->offset)),    handed_over(std::move(all->entity)),
            handed_over(std::move(all->node_ptr)),  handed_over(std::move(all->group_type)),
            handed_over(std::move(all->group_ptr)), handed_over(std::move(all->neighbour))};
}

}  // namespace

void define_neighbourhoods(nb::module_& module) {
    nb::exception<DamagedGraph>(module, "DamagedGraph", PyExc_ValueError);
    module.def("grow", &grow);
}

}  // namespace gamma_kg
