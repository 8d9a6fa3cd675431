/* float16 with the conversions of F16C, eight elements at a time. Chosen at run time; other machines compile the last
 * lines only. */
#include "daemon/collate/mix/blend.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define F16C    __attribute__((target("avx,f16c")))
#define NEAREST 0 /* ties to even; of _MM_FROUND_TO_NEAREST_INT, whatever the thread's rounding is */

/* A product, rounded to float16. */
F16C static inline __m256 blend_f16c_times(const uint16_t *elements, __m256 share) {
        __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)elements));

        return _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_mul_ps(wide, share), NEAREST));
}

F16C static void blend(void *to, const void *with, size_t n, double lam) {
        __m256 l = _mm256_set1_ps((float)lam), rest = _mm256_set1_ps((float)(1 - lam));
        const uint16_t *b = with;
        uint16_t *a = to;
        size_t i = 0;

        for (; i + 8 <= n; i += 8)
                _mm_storeu_si128(
                        (__m128i *)(void *)(a + i),
                        _mm256_cvtps_ph(_mm256_add_ps(blend_f16c_times(a + i, l), blend_f16c_times(b + i, rest)),
                                        NEAREST));
        blend_half(a + i, b + i, n - i, lam);
}

/* clang 14 cannot be asked for F16C by name. AVX is what the kernel keeps, too. */
blend_function blend_half_f16c(void) {
        unsigned int a, b, c = 0, d;

        return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx") ? blend : NULL;
}
#else
blend_function blend_half_f16c(void) {
        return NULL;
}
#endif
