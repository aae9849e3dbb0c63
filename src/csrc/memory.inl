// The memory of a workspace, handed out piece by piece.
#pragma once
#include <cstdint>

#include "kernels.h"
#include "simd.h"

namespace GAMMA_ISA_NAMESPACE {

using gamma_kg::Workspace;

// Every piece begins on a line of its own. Begun at 0 it hands out nothing that may be touched, and counts.
struct Memory {
    uintptr_t at;

    template <class P>
    GAMMA_INLINE P* take(int64_t count) {
        P* const piece = reinterpret_cast<P*>(at);
        at += (uintptr_t(count) * sizeof(P) + 63) / 64 * 64;
        return piece;
    }
};

static GAMMA_INLINE Memory memory_of(const Workspace& work, int64_t thread) {
    return {reinterpret_cast<uintptr_t>(work.memory + thread * work.bytes)};
}

template <class T>
GAMMA_INLINE void clear(T* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = T(0);
}

}  // namespace GAMMA_ISA_NAMESPACE
