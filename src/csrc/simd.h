// Vectors of the instruction set a translation unit is compiled for. GAMMA_VECTOR_BYTES comes from its isa_*.cpp file;
// without compiler support for vector types a "vector" is one number, and the same code still works.
#pragma once

#include <math.h>

#include <cstdint>

#if defined(__GNUC__)
#define GAMMA_INLINE inline __attribute__((always_inline))
#define GAMMA_PREFETCH(address) __builtin_prefetch(address)
#define GAMMA_PREFETCH_TO_WRITE(address) __builtin_prefetch(address, 1)
#if defined(__clang__)
#define GAMMA_UNROLL _Pragma("unroll")
#define GAMMA_ROLLED _Pragma("nounroll")
#else
#define GAMMA_UNROLL _Pragma("GCC unroll 32")
// GCC lets the wish to unroll spill over to the loop around; this one says no.
#define GAMMA_ROLLED _Pragma("GCC unroll 1")
#endif
#else
#define GAMMA_INLINE inline
#define GAMMA_PREFETCH(address) ((void)(address))
#define GAMMA_PREFETCH_TO_WRITE(address) ((void)(address))
#define GAMMA_UNROLL
#define GAMMA_ROLLED
#undef GAMMA_VECTOR_BYTES
#endif

// A value that the compiler must keep in a register: it would read it from memory again at every use, and it is the loads
// that bound a sum over edges, and that a linear map has none to spare of.
#if defined(__GNUC__) && defined(__AVX512F__)
#define GAMMA_KEEP(value) __asm__("" : "+v"(value))
#elif defined(__GNUC__) && defined(__x86_64__)
#define GAMMA_KEEP(value) __asm__("" : "+x"(value))
#else
#define GAMMA_KEEP(value) ((void)0)
#endif

// The compiler must read `number` before anything at `row`: it would read it when it is needed, behind all the loads of the
// row, and the processor would wait for it.
#if defined(__GNUC__)
#define GAMMA_BEFORE(number, row) __asm__("" : "+r"(number), "+r"(row))
#else
#define GAMMA_BEFORE(number, row) ((void)0)
#endif

// Everything below is compiled once per instruction set: it must live in that set's own namespace, or the linker would
// merge equal names and run AVX-512 code on a machine that has none. For the same reason no std templates are used here.
namespace GAMMA_ISA_NAMESPACE {

#if defined(GAMMA_VECTOR_BYTES)
template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(GAMMA_VECTOR_BYTES)));
    typedef T loose __attribute__((vector_size(GAMMA_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vec = typename VectorOf<T>::type;
#else
template <class T>
using Vec = T;
#endif

template <class V, class T>
struct Lanes {
    static constexpr int64_t count = sizeof(V) / sizeof(T);
    static GAMMA_INLINE V load(const T* p) {
#if defined(GAMMA_VECTOR_BYTES)
        return *reinterpret_cast<const typename VectorOf<T>::loose*>(p);
#else
        return *p;
#endif
    }
    static GAMMA_INLINE void store(T* p, V v) {
#if defined(GAMMA_VECTOR_BYTES)
        *reinterpret_cast<typename VectorOf<T>::loose*>(p) = v;
#else
        *p = v;
#endif
    }
    // Minus zero changes no number, so that the compiler can leave it at the broadcast.
    static GAMMA_INLINE V all(T value) { return value - V{}; }
};

template <class T>
struct Lanes<T, T> {
    static constexpr int64_t count = 1;
    static GAMMA_INLINE T load(const T* p) { return *p; }
    static GAMMA_INLINE void store(T* p, T v) { *p = v; }
    static GAMMA_INLINE T all(T value) { return value; }
};

template <class T>
constexpr GAMMA_INLINE T smaller(T a, T b) {
    return a < b ? a : b;
}
template <class T>
constexpr GAMMA_INLINE T larger(T a, T b) {
    return a > b ? a : b;
}

// The C functions: those of std are templates or inline, see above.
GAMMA_INLINE float square_root(float x) { return ::sqrtf(x); }
GAMMA_INLINE double square_root(double x) { return ::sqrt(x); }
GAMMA_INLINE float exponential(float x) { return ::expf(x); }
GAMMA_INLINE double exponential(double x) { return ::exp(x); }

}  // namespace GAMMA_ISA_NAMESPACE
