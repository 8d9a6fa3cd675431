/* With AVX2: the same code, a vector in one register. Without fused multiply-adds, which would round differently. */
#include "daemon/sound/code.h"

#include <stddef.h>

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
/* One instruction, which a compiler does not find in a product of 64 bits. */
#define PRODUCTS(wides, factor) ((lane_wides)_mm256_mul_epu32((__m256i)(wides), _mm256_set1_epi32((int)(factor))))
#include "daemon/sound/vector_code.h"

const struct sound_code *sound_code_avx2(void) {
        static const struct sound_code CODE_AVX2 = VECTOR_CODE;

        return __builtin_cpu_supports("avx2") ? &CODE_AVX2 : NULL;
}
#else
const struct sound_code *sound_code_avx2(void) {
        return NULL;
}
#endif
