// Who does which unit of work.
#pragma once

#include <atomic>
#include <vector>

#include "kernels.h"

namespace gamma_kg {

// Every thread has a run of units of its own and does it in order; when that is done, it helps others with theirs. So a thread
// writes, layer after layer, the rows that it wrote before and still has in its caches (two cores need not share one), and one
// that is held up holds nobody up.
class Units {
public:
    Units(int64_t count, int threads);
    // The next unit for a thread; -1 when all are taken.
    int64_t take(int thread);

private:
    int64_t count_;
    int threads_;
    std::vector<std::atomic<int64_t>> next_;

    int64_t begin(int thread) const { return count_ * thread / threads_; }
};

}  // namespace gamma_kg
