// Attention over branches and the score at the border.
#include "border.h"

namespace gamma_kg {

namespace {

// States of a branch: [queries, candidates, D], rows dense, queries as far apart as they like.
template <class T>
using States = nb::ndarray<const T, nb::ndim<3>, nb::device::cpu>;

// `offset`: the candidates of query b are offset[b] .. offset[b + 1] of a single row of states; without it all queries have as many.
template <class T>
void score(std::vector<States<T>> states, Ids offset, Array<const T> key_weight, Array<const T> key_query, Array<const T> context,
           double temperature, double mix, Array<const T> weight, Array<const T> hidden_weight, Array<const T> hidden_query,
           Array<const T> hidden_bias, Array<const T> out_weight, double out_bias, Array<T> score, Array<T> branch_weight,
           int threads) {
    if (states.empty()) throw nb::value_error("states of at least one branch are scored");
    want(hidden_query, "hidden layer of the queries", {-1, int64_t(states.size()), -1});
    const int64_t queries = int64_t(hidden_query.shape(0)), branches = int64_t(states.size());
    const int64_t hidden = int64_t(hidden_query.shape(2)), channels = int64_t(states[0].shape(2));
    const int64_t rows = int64_t(states[0].shape(1)), stride = states[0].stride(0);
    for (const auto& z : states) {
        want(z, "states", {offset.is_valid() ? 1 : queries, rows, channels});
        if ((z.shape(0) > 1 && z.stride(0) != stride) || (rows > 1 && z.stride(1) != channels) ||
            (channels > 1 && z.stride(2) != 1))
            throw nb::value_error("states: rows must be dense, and queries equally far apart in all branches");
    }
    if (offset.is_valid()) want(offset, "offsets", {queries + 1});
    const int64_t attention = key_weight.is_valid() && key_weight.ndim() == 3 ? int64_t(key_weight.shape(1)) : 0;
    if (key_weight.is_valid()) {
        want(key_weight, "keys", {branches, attention, channels});
        want(key_query, "keys of the queries", {queries, branches, attention});
        want(context, "context", {queries, attention});
    } else {
        want(weight, "branch weights", {queries, branches});
    }
    want(hidden_weight, "hidden layer", {branches, hidden, channels});
    want(hidden_bias, "hidden bias", {hidden});
    want(out_weight, "out", {hidden});
    const int64_t results = offset.is_valid() ? rows : queries * rows;
    if (int64_t(score.size()) != results || int64_t(branch_weight.size()) != results * branches)
        throw nb::value_error("results: wanted a score and a weight of each branch for every candidate");
    nb::gil_scoped_release release;
    std::vector<const T*> pointers;
    for (const auto& z : states) pointers.push_back(z.data());
    std::vector<int64_t> state_begin(queries), result_begin(queries);
    std::vector<Candidates> candidates;
    for (int64_t b = 0; b < queries; ++b) {
        state_begin[b] = offset.is_valid() ? offset.data()[b] * channels : b * stride;
        result_begin[b] = offset.is_valid() ? offset.data()[b] : b * rows;
        const int64_t count = offset.is_valid() ? offset.data()[b + 1] - offset.data()[b] : rows;
        for (int64_t first = 0; first < count; first += kCandidates)
            candidates.push_back({b, first, std::min(count, first + kCandidates)});
    }
    Units units(int64_t(candidates.size()), threads);
    ScoreArgs<T> args{queries,
                      branches,
                      channels,
                      attention,
                      hidden,
                      pointers.data(),
                      state_begin.data(),
                      result_begin.data(),
                      address(key_weight),
                      address(key_query),
                      address(context),
                      T(temperature),
                      T(mix),
                      address(weight),
                      hidden_weight.data(),
                      hidden_query.data(),
                      hidden_bias.data(),
                      out_weight.data(),
                      T(out_bias),
                      score.data(),
                      branch_weight.data(),
                      candidates.data(),
                      threads,
                      &units,
                      {}};
    const Work work(kernels<T>().score_shared_bytes(args), kernels<T>().score_bytes(args), threads);
    args.work = work.space();
    kernels<T>().score(args);
}

template <class T>
void define(nb::module_& module) {
    const auto exact = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    module.def("score", &score<T>, exact, maybe, maybe, maybe, maybe, nb::arg(), nb::arg(), maybe, exact, exact, exact, exact,
               nb::arg(), exact, exact, nb::arg());
}

}  // namespace

void define_score(nb::module_& module) {
    define<float>(module);
    define<double>(module);
}

}  // namespace gamma_kg
