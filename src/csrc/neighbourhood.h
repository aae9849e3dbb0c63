// The neighbourhood of a query: the part of a graph that is nearest to its start, as a graph of its own.
#pragma once

#include <stdexcept>
#include <vector>

#include "graph.h"

namespace gamma_kg {

// Thrown where an array of the graph points outside of another: it may come from a file that nobody has read whole.
struct DamagedGraph : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Growth {
    int64_t triples;  // at most so many in a neighbourhood
    double restart;   // chance that the walk goes back to its start, at every step
};

// A graph with ids of its own, in the order in which its nodes came in: the nearest first.
struct Neighbourhood {
    std::vector<int32_t> node;       // the whole graph's number of each
    std::vector<int64_t> group_end;  // per node, into groups
    std::vector<int32_t> group_type;
    std::vector<int64_t> edge_end;  // per group, into neighbours
    std::vector<int32_t> neighbour;
};

// Grows neighbourhoods, one after the other. Keeps its scratch, which is as large as the largest that it has seen and not as
// large as the graph, and is never cleared as a whole.
class Grower {
public:
    // From weighted starts; gamma_kg/graph/neighbourhoods.py has the definition.
    void grow(const Graph& graph, int64_t num_groups, int64_t num_edges, const int64_t* start, const double* weight,
              int64_t count, const Growth& growth, Neighbourhood& out);

private:
    struct Visited {
        int32_t node;
        bool is_start, is_queued, is_pushed;
        int32_t place;          // in the neighbourhood, -1: not in it
        int64_t begin, degree;  // edges
        double estimate, residual;
    };
    struct Cell {
        uint32_t stamp;
        int32_t visited;
    };
    struct Edge {
        int32_t at;
        uint64_t type_and_neighbour;
    };
    // An edge that a node in the neighbourhood has to a hub that is not in it yet.
    struct Pending {
        int32_t hub, place, type;
    };

    struct Run {
        int64_t begin, end;
    };

    const Graph* graph_ = nullptr;
    int64_t num_groups_ = 0, num_edges_ = 0;
    std::vector<Visited> visited_;
    std::vector<Cell> cells_;
    uint32_t stamp_ = 0;
    std::vector<int32_t> queue_, order_, hubs_;
    std::vector<Pending> pending_;
    std::vector<Edge> found_;
    std::vector<uint64_t> maybe_, sorted_;
    std::vector<int64_t> begin_;

    void begin_query();
    int32_t find(int32_t node) const;
    int32_t visit(int32_t node);
    void make_room();
    void walk(const Growth& growth);
    void admit(const Growth& growth, Neighbourhood& out);
    Run run_of(int64_t group, const Visited& owner) const;
    void edges_of(int32_t visited, int64_t hub_degree);
    void edges_of_hub(int32_t visited);
    void note(int32_t from, int32_t type, int32_t to);
    void write(Neighbourhood& out);
};

}  // namespace gamma_kg
