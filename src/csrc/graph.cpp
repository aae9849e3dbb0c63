#include "graph.h"

#include <algorithm>

namespace gamma_kg {

namespace {

Cut cut_at(const Graph& graph, int64_t wanted, int64_t share) {
    // First node whose work begins at or after `wanted`.
    int64_t low = 0, high = graph.num_nodes;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (graph.work(middle) < wanted) low = middle + 1;
        else high = middle;
    }
    if (low > 0) {
        int64_t node = low - 1;
        int64_t begin = graph.edge_begin(node), end = graph.edge_begin(low);
        int64_t edge = begin + (wanted - graph.work(node));
        // Cutting a node costs one more addition of its row: only worth it if the node is a large part of a share.
        if (end - begin > share / 4 && edge > begin && edge < end) {
            const int64_t* first = graph.group_ptr + graph.node_ptr[node];
            const int64_t* last = graph.group_ptr + graph.node_ptr[low];
            return {node, std::upper_bound(first, last, edge) - graph.group_ptr - 1, edge};
        }
        if (wanted - graph.work(node) < graph.work(low) - wanted) low = node;  // the nearer of the two borders
    }
    return {low, graph.node_ptr[low], graph.edge_begin(low)};
}

}  // namespace

void cut_evenly(const Graph& graph, int64_t parts, Cut* cuts) {
    int64_t total = graph.work(graph.num_nodes), share = std::max<int64_t>(total / parts, 1);
    cuts[0] = {0, 0, 0};
    for (int64_t part = 1; part < parts; ++part) {
        cuts[part] = cut_at(graph, total / parts * part + total % parts * part / parts, share);
        if (cuts[part].edge < cuts[part - 1].edge || cuts[part].node < cuts[part - 1].node) cuts[part] = cuts[part - 1];
    }
    cuts[parts] = {graph.num_nodes, graph.node_ptr[graph.num_nodes], graph.num_edges()};
}

int64_t parts_per_query(const Graph& graph, int64_t queries, int64_t channels, int threads) {
    if (threads <= 1) return 1;
    // Below some 30,000 additions a part is not worth waking a thread for.
    int64_t useful = std::max<int64_t>(graph.work(graph.num_nodes) * channels / 32768, 1);
    int64_t wanted = std::max<int64_t>((4 * threads + queries - 1) / std::max<int64_t>(queries, 1), 1);
    return std::min(useful, wanted);
}

}  // namespace gamma_kg
