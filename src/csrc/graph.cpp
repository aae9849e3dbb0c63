#include "graph.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace gamma_kg {

namespace {

int64_t edge_begin(const Graph& graph, int64_t node) { return graph.group_ptr[graph.node_ptr[node]]; }

// Work before a node, in edges: a group costs about two edges (one product), a node what the caller says.
int64_t work(const Graph& graph, int64_t node, int64_t node_cost) {
    return edge_begin(graph, node) + 2 * graph.node_ptr[node] + node_cost * node;
}

Cut cut_at(const Graph& graph, int64_t node_cost, int64_t wanted, int64_t share) {
    // First node whose work begins at or after `wanted`.
    int64_t low = 0, high = graph.num_nodes;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (work(graph, middle, node_cost) < wanted) low = middle + 1;
        else high = middle;
    }
    if (low > 0) {
        int64_t node = low - 1;
        int64_t begin = edge_begin(graph, node), end = edge_begin(graph, low);
        int64_t edge = begin + (wanted - work(graph, node, node_cost));
        // Cutting a node costs one more addition of its row: only worth it if the node is a large part of a share.
        if (end - begin > share / 4 && edge > begin && edge < end) {
            const int64_t* first = graph.group_ptr + graph.node_ptr[node];
            const int64_t* last = graph.group_ptr + graph.node_ptr[low];
            return {node, std::upper_bound(first, last, edge) - graph.group_ptr - 1, edge};
        }
        // The nearer of the two borders.
        if (wanted - work(graph, node, node_cost) < work(graph, low, node_cost) - wanted) low = node;
    }
    return {low, graph.node_ptr[low], edge_begin(graph, low)};
}

}  // namespace

int64_t layer_node_cost(int64_t channels) { return kNodeCost + channels * 4 / 3; }

void cut_evenly(const Graph& graph, int64_t node_cost, int64_t parts, Cut* cuts, bool through_nodes) {
    const int64_t total = work(graph, graph.num_nodes, node_cost);
    const int64_t share = through_nodes ? std::max<int64_t>(total / parts, 1) : std::numeric_limits<int64_t>::max();
    cuts[0] = {0, 0, 0};
    for (int64_t part = 1; part < parts; ++part) {
        cuts[part] = cut_at(graph, node_cost, total / parts * part + total % parts * part / parts, share);
        if (cuts[part].edge < cuts[part - 1].edge || cuts[part].node < cuts[part - 1].node) cuts[part] = cuts[part - 1];
    }
    cuts[parts] = {graph.num_nodes, graph.node_ptr[graph.num_nodes], edge_begin(graph, graph.num_nodes)};
}

// Nodes with the same most frequent edge type, and among these with the same busiest neighbour, follow each other: they
// read the same states, which are then still in the second-level cache. Groups of a node: the smallest first, so that the
// processor's guess how long a group is comes true more often.
void renumber(const Graph& graph, const Renumbered& to) {
    struct Key {
        int32_t type, hub, node;
        bool operator<(const Key& other) const {
            if (type != other.type) return type < other.type;
            return hub != other.hub ? hub < other.hub : node < other.node;
        }
    };
    auto group_size = [&](int64_t group) { return graph.group_ptr[group + 1] - graph.group_ptr[group]; };
    auto degree = [&](int64_t node) { return edge_begin(graph, node + 1) - edge_begin(graph, node); };
    std::vector<Key> keys(graph.num_nodes);
    for (int64_t node = 0; node < graph.num_nodes; ++node) {
        Key key{-1, -1, int32_t(node)};
        int64_t largest = 0, busiest = -1;
        for (int64_t group = graph.node_ptr[node]; group < graph.node_ptr[node + 1]; ++group)
            if (group_size(group) > largest) largest = group_size(group), key.type = graph.group_type[group];
        for (int64_t edge = edge_begin(graph, node); edge < edge_begin(graph, node + 1); ++edge)
            if (degree(graph.neighbour[edge]) > busiest) key.hub = graph.neighbour[edge], busiest = degree(key.hub);
        keys[node] = key;
    }
    std::sort(keys.begin(), keys.end());

    for (int64_t place = 0; place < graph.num_nodes; ++place) to.place[keys[place].node] = int32_t(place);
    std::vector<int64_t> groups;
    int64_t num_groups = 0, num_edges = 0;
    to.node_ptr[0] = to.group_ptr[0] = 0;
    for (int64_t place = 0; place < graph.num_nodes; ++place) {
        const int64_t node = keys[place].node;
        groups.clear();
        for (int64_t group = graph.node_ptr[node]; group < graph.node_ptr[node + 1]; ++group) groups.push_back(group);
        std::stable_sort(groups.begin(), groups.end(), [&](int64_t a, int64_t b) { return group_size(a) < group_size(b); });
        for (int64_t group : groups) {
            to.group_type[num_groups] = graph.group_type[group];
            for (int64_t edge = graph.group_ptr[group]; edge < graph.group_ptr[group + 1]; ++edge)
                to.neighbour[num_edges++] = to.place[graph.neighbour[edge]];
            to.group_ptr[++num_groups] = num_edges;
        }
        to.node_ptr[place + 1] = num_groups;
    }
}

int64_t forward_parts(const Graph& graph, int64_t channels) {
    // Some 250,000 additions are worth a part: rows of a block, and more of them than a cut costs.
    const int64_t useful = work(graph, graph.num_nodes, layer_node_cost(channels)) * channels / (1 << 18);
    return std::min(std::max<int64_t>(useful, 1), kForwardParts);
}

int64_t backward_parts(const Graph& graph, int64_t queries, int64_t channels, int threads) {
    if (threads <= 1) return 1;
    // Below some 30,000 additions a part is not worth waking a thread for.
    const int64_t useful = std::max<int64_t>(work(graph, graph.num_nodes, kNodeCost) * channels / (1 << 15), 1);
    const int64_t wanted = (kBackwardUnits * threads + queries - 1) / std::max<int64_t>(queries, 1);
    return std::min(useful, std::max<int64_t>(wanted, 1));
}

}  // namespace gamma_kg
