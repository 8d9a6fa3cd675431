/* augment/operations/wide.h: loops whose rounds are alike, compiled once more for the instructions of this machine. Private
 * to this floor.
 *
 *      static ALWAYS_INLINE void add_loop(const uint8_t *row, size_t n, uint16_t *sums) { for (...) ... }
 *      WIDE(add, (const uint8_t *row, size_t n, uint16_t *sums), (row, n, sums))
 *
 * makes a function add(), which runs the form for AVX2 where the CPU has that. Both forms are the same C, whose float
 * operations are never fused (-ffp-contract=off), so they give the same bits. */
#pragma once

#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifdef __clang__ /* which vectorises at -O2 and knows no such attribute */
#define VECTORISED
#else
#define VECTORISED __attribute__((optimize("O3")))
#endif

#ifdef __x86_64__
#define WIDE(name, parameters, arguments)                                                                              \
        VECTORISED __attribute__((target("avx2"))) static void name##_avx2 parameters {                                \
                name##_loop arguments;                                                                                 \
        }                                                                                                              \
        VECTORISED static void name##_plain parameters {                                                               \
                name##_loop arguments;                                                                                 \
        }                                                                                                              \
        static void name parameters {                                                                                  \
                if (__builtin_cpu_supports("avx2"))                                                                    \
                        name##_avx2 arguments;                                                                         \
                else                                                                                                   \
                        name##_plain arguments;                                                                        \
        }
#else
#define WIDE(name, parameters, arguments)                                                                              \
        VECTORISED static void name parameters {                                                                       \
                name##_loop arguments;                                                                                 \
        }
#endif
