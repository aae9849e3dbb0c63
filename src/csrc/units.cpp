#include "units.h"

#include <algorithm>

namespace gamma_kg {

Units::Units(int64_t count, int threads) : count_(count), threads_(std::max(threads, 1)), next_(threads_) {
    for (int thread = 0; thread < threads_; ++thread) next_[thread] = begin(thread);
}

int64_t take_unit(Units& units, int thread) { return units.take(thread); }

int64_t Units::take(int thread) {
    for (int turn = 0; turn < threads_; ++turn) {
        const int owner = (thread + turn) % threads_;
        const int64_t unit = next_[owner].fetch_add(1, std::memory_order_relaxed);
        if (unit < begin(owner + 1)) return unit;
    }
    return -1;
}

}  // namespace gamma_kg
