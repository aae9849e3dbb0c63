// Personalised PageRank by forward push (Andersen, Chung, Lang 2006), then the nearest nodes until their triples are as many as
// asked for. Everything is done in the order of the definition in gamma_kg/graph/neighbourhoods.py, sums included, so that both
// agree to the last bit.
#include "neighbourhood.h"

#include <algorithm>

namespace gamma_kg {

namespace {

constexpr int32_t kNone = -1;
constexpr int kRounds = 64;
constexpr size_t kMaybeBits = 1 << 17;  // of a filter that stays in the first-level cache

inline uint64_t mixed(int32_t node) {
    uint64_t x = uint64_t(uint32_t(node)) * 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 29);
}

inline bool is_marked(const std::vector<uint64_t>& bits, int32_t node) {
    const uint64_t at = mixed(node) % kMaybeBits;
    return bits[at / 64] >> (at % 64) & 1;
}

inline void mark(std::vector<uint64_t>& bits, int32_t node) {
    const uint64_t at = mixed(node) % kMaybeBits;
    bits[at / 64] |= uint64_t(1) << (at % 64);
}

}  // namespace

void Grower::begin_query() {
    visited_.clear();
    hubs_.clear();
    pending_.clear();
    found_.clear();
    maybe_.assign(kMaybeBits / 64, 0);
    if (cells_.empty()) cells_.assign(1 << 12, Cell{0, kNone});
    if (++stamp_ == 0) {  // after four billion queries
        cells_.assign(cells_.size(), Cell{0, kNone});
        stamp_ = 1;
    }
}

int32_t Grower::find(int32_t node) const {
    const size_t mask = cells_.size() - 1;
    for (size_t at = mixed(node) & mask;; at = (at + 1) & mask) {
        const Cell& cell = cells_[at];
        if (cell.stamp != stamp_) return kNone;
        if (visited_[cell.visited].node == node) return cell.visited;
    }
}

int32_t Grower::visit(int32_t node) {
    if (2 * (visited_.size() + 1) > cells_.size()) make_room();
    const size_t mask = cells_.size() - 1;
    for (size_t at = mixed(node) & mask;; at = (at + 1) & mask) {
        Cell& cell = cells_[at];
        if (cell.stamp == stamp_) {
            if (visited_[cell.visited].node == node) return cell.visited;
            continue;
        }
        if (node < 0 || node >= graph_->num_nodes) throw DamagedGraph("a neighbour is no node of the graph");
        const int64_t first = graph_->node_ptr[node], last = graph_->node_ptr[node + 1];
        if (first < 0 || first > last || last > num_groups_) throw DamagedGraph("groups of a node are out of range");
        const int64_t begin = graph_->group_ptr[first], end = graph_->group_ptr[last];
        if (begin < 0 || begin > end || end > num_edges_) throw DamagedGraph("edges of a node are out of range");
        cell = {stamp_, int32_t(visited_.size())};
        visited_.push_back({node, false, false, false, kNone, begin, end - begin, 0.0, 0.0});
        return cell.visited;
    }
}

void Grower::make_room() {
    cells_.assign(2 * cells_.size(), Cell{0, kNone});
    const size_t mask = cells_.size() - 1;
    for (size_t i = 0; i < visited_.size(); ++i) {
        size_t at = mixed(visited_[i].node) & mask;
        while (cells_[at].stamp == stamp_) at = (at + 1) & mask;
        cells_[at] = {stamp_, int32_t(i)};
    }
}

// Pushes whoever has a residual of at least `least` per edge: it keeps a share and hands the rest on. In rounds, with less and
// less, until what was pushed has edges enough to fill the neighbourhood, or nothing is left. Of a node with more edges than
// fit, only every n-th is followed.
void Grower::walk(const Growth& growth) {
    const int64_t enough = std::max<int64_t>(2 * growth.triples, 1);
    int64_t volume = 0;
    double least = 4.0 / double(enough);
    for (int round = 0; round < kRounds && volume < enough; ++round, least /= 2) {
        queue_.clear();
        bool is_whole = true;
        for (size_t i = 0; i < visited_.size(); ++i) {
            Visited& v = visited_[i];
            is_whole &= v.is_pushed || v.degree == 0;
            v.is_queued = v.degree > 0 && v.residual >= least * double(v.degree);
            if (v.is_queued) queue_.push_back(int32_t(i));
        }
        if (is_whole) return;
        for (size_t turn = 0; turn < queue_.size() && volume < 2 * enough; ++turn) {
            Visited& from = visited_[queue_[turn]];
            const int64_t begin = from.begin, end = begin + from.degree, stride = (from.degree + enough - 1) / enough;
            const double share = (1 - growth.restart) * from.residual / double(from.degree);
            if (!from.is_pushed) volume += std::min(from.degree, enough);
            from.estimate += growth.restart * from.residual;
            from.residual = 0;
            from.is_pushed = true;
            from.is_queued = false;
            for (int64_t edge = begin; edge < end; edge += stride) {
                const int32_t to = visit(graph_->neighbour[edge]);
                Visited& v = visited_[to];
                v.residual += share;
                if (v.is_queued || v.residual < least * double(v.degree)) continue;
                v.is_queued = true;
                queue_.push_back(to);
            }
        }
    }
}

void Grower::note(int32_t from, int32_t type, int32_t to) {
    found_.push_back({from, uint64_t(uint32_t(type)) << 32 | uint32_t(to)});
}

// The edges of one of a node's groups.
Grower::Run Grower::run_of(int64_t group, const Visited& owner) const {
    const int64_t begin = graph_->group_ptr[group], end = graph_->group_ptr[group + 1];
    const int32_t type = graph_->group_type[group];
    if (begin < owner.begin || begin > end || end > owner.begin + owner.degree || type < 0 || type >= graph_->num_types)
        throw DamagedGraph("a group of edges is out of range");
    return {begin, end};
}

// The edges between a node that comes in and those that are in.
void Grower::edges_of(int32_t which, int64_t hub_degree) {
    const Visited self = visited_[which];
    for (int64_t group = graph_->node_ptr[self.node]; group < graph_->node_ptr[self.node + 1]; ++group) {
        const Run run = run_of(group, self);
        const int32_t type = graph_->group_type[group];
        for (int64_t edge = run.begin; edge < run.end; ++edge) {
            const int32_t node = graph_->neighbour[edge];
            if (!is_marked(maybe_, node)) continue;
            const int32_t other = find(node);
            if (other == kNone) continue;
            const Visited& v = visited_[other];
            if (v.place != kNone) {
                note(self.place, type, v.place);
                if (other != which) note(v.place, graph_->inverse[type], self.place);
            } else if (v.degree > hub_degree) {
                pending_.push_back({other, self.place, type});
            }
        }
    }
}

// The same for a hub, whose edges are too many to look through: other nodes have noted theirs to it, and in the groups of
// another hub its number is found by bisection.
void Grower::edges_of_hub(int32_t which) {
    const Visited self = visited_[which];
    for (const Pending& p : pending_)
        if (p.hub == which) {
            note(p.place, p.type, self.place);
            note(self.place, graph_->inverse[p.type], p.place);
        }
    for (int32_t other : hubs_) {
        const Visited& v = visited_[other];
        for (int64_t group = graph_->node_ptr[v.node]; group < graph_->node_ptr[v.node + 1]; ++group) {
            const Run run = run_of(group, v);
            const auto range = std::equal_range(graph_->neighbour + run.begin, graph_->neighbour + run.end, self.node);
            for (auto at = range.first; at != range.second; ++at) {
                note(v.place, graph_->group_type[group], self.place);
                if (other != which) note(self.place, graph_->inverse[graph_->group_type[group]], v.place);
            }
        }
    }
}

void Grower::admit(const Growth& growth, Neighbourhood& out) {
    const int64_t hub_degree = std::max<int64_t>(2 * growth.triples, 1);
    order_.resize(visited_.size());
    for (size_t i = 0; i < visited_.size(); ++i) {
        visited_[i].estimate += growth.restart * visited_[i].residual;
        order_[i] = int32_t(i);
        if (visited_[i].degree > hub_degree) mark(maybe_, visited_[i].node);
    }
    const auto is_later = [&](int32_t a, int32_t b) {
        const Visited &x = visited_[a], &y = visited_[b];
        if (x.is_start != y.is_start) return y.is_start;
        return x.estimate != y.estimate ? x.estimate < y.estimate : x.node > y.node;
    };
    std::make_heap(order_.begin(), order_.end(), is_later);
    out.node.clear();
    for (auto end = order_.end(); end != order_.begin(); --end) {
        std::pop_heap(order_.begin(), end, is_later);
        const int32_t which = *(end - 1);
        Visited& v = visited_[which];
        const size_t found = found_.size();
        v.place = int32_t(out.node.size());
        mark(maybe_, v.node);
        if (v.degree > hub_degree) {
            hubs_.push_back(which);
            edges_of_hub(which);
        } else {
            edges_of(which, hub_degree);
        }
        if (int64_t(found_.size()) > 2 * growth.triples && v.place > 0) {
            found_.resize(found);
            return;
        }
        out.node.push_back(v.node);
    }
}

void Grower::write(Neighbourhood& out) {
    const size_t nodes = out.node.size();
    begin_.assign(nodes + 1, 0);
    for (const Edge& edge : found_) ++begin_[edge.at + 1];
    for (size_t n = 0; n < nodes; ++n) begin_[n + 1] += begin_[n];
    sorted_.resize(found_.size());
    for (const Edge& edge : found_) sorted_[begin_[edge.at]++] = edge.type_and_neighbour;  // begin becomes end
    out.group_end.clear(), out.group_type.clear(), out.edge_end.clear(), out.neighbour.clear();
    for (size_t n = 0; n < nodes; ++n) {
        const auto begin = sorted_.begin() + (n ? begin_[n - 1] : 0), end = sorted_.begin() + begin_[n];
        std::sort(begin, end);
        for (auto at = begin; at != end; ++at) {
            const int32_t type = int32_t(*at >> 32);
            if (at == begin || int32_t(*(at - 1) >> 32) != type) {
                out.group_type.push_back(type);
                out.edge_end.push_back(int64_t(out.neighbour.size()));
            }
            out.neighbour.push_back(int32_t(*at & 0xFFFFFFFFu));
            out.edge_end.back() = int64_t(out.neighbour.size());
        }
        out.group_end.push_back(int64_t(out.group_type.size()));
    }
}

void Grower::grow(const Graph& graph, int64_t num_groups, int64_t num_edges, const int64_t* start, const double* weight,
                  int64_t count, const Growth& growth, Neighbourhood& out) {
    graph_ = &graph, num_groups_ = num_groups, num_edges_ = num_edges;
    begin_query();
    for (int64_t i = 0; i < count; ++i) {
        Visited& v = visited_[visit(int32_t(start[i]))];
        v.is_start = true;
        v.residual += weight[i];
    }
    walk(growth);
    admit(growth, out);
    write(out);
}

}  // namespace gamma_kg
