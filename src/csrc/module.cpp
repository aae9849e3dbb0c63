// The module `gamma_kg._native`: the instruction set, the process's memory, and what the other files define.
#include <nanobind/stl/string.h>

#include <climits>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "border.h"
#include "neighbourhood_face.h"

namespace gamma_kg {

const Kernels* chosen = best_kernels();

namespace {

// Ask the allocator to keep what is freed instead of handing it back: a training step frees and takes the same large
// blocks again and again, and every fresh page costs a trap and a clearing. False where the allocator can't be asked.
bool retain_freed_memory() {
#if defined(__GLIBC__)
    return mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, INT_MAX) && mallopt(M_TOP_PAD, 64 << 20);
#else
    return false;
#endif
}

// Ask for large pages before the memory is first written: rows gathered at random from a large table otherwise miss the
// table of pages nearly every time. A wish only; where the system does not know it nothing happens.
void wish_large_pages(const nb::ndarray<nb::c_contig, nb::device::cpu>& array) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t address = reinterpret_cast<uintptr_t>(array.data()), page = 4096;
    const uintptr_t begin = (address + page - 1) / page * page, end = (address + array.nbytes()) / page * page;
    if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)array;
#endif
}

bool use_isa(const std::string& name) {
    const Kernels* kernels = kernels_named(name.c_str());
    if (kernels) chosen = kernels;
    return kernels != nullptr;
}

}  // namespace

}  // namespace gamma_kg

NB_MODULE(_native, module) {
    using namespace gamma_kg;
    // Graphs that a script still holds when Python ends are no leak, and whoever wrote the script should not read that they are.
    nb::set_leak_warnings(false);
    module.def("isa", [] { return chosen->name; });
    module.def("use_isa", &use_isa);
    module.def("has_threads", [] {
#if defined(_OPENMP)
        return true;
#else
        return false;
#endif
    });
    module.def("retain_freed_memory", &retain_freed_memory);
    module.def("release_freed_memory", [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    });
    module.def("wish_large_pages", &wish_large_pages);
    define_graphs(module);
    define_propagation(module);
    define_layers(module);
    define_score(module);
    define_neighbourhoods(module);
}
