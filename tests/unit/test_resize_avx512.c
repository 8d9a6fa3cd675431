/* unit/test_resize_avx512.c: test_resize.c for the AVX-512 form, on a CPU that need not have it: its source is compiled
 * once more, with the instructions as plain C (SIMDe). That shows its bits; its speed only the real thing shows. */
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512/setzero.h> /* the others need it first */

#include <simde/x86/avx512/add.h>
#include <simde/x86/avx512/broadcast.h>
#include <simde/x86/avx512/cast.h>
#include <simde/x86/avx512/extract.h>
#include <simde/x86/avx512/insert.h>
#include <simde/x86/avx512/loadu.h>
#include <simde/x86/avx512/madd.h>
#include <simde/x86/avx512/mulhrs.h>
#include <simde/x86/avx512/packs.h>
#include <simde/x86/avx512/packus.h>
#include <simde/x86/avx512/set1.h>
#include <simde/x86/avx512/shuffle.h>
#include <simde/x86/avx512/storeu.h>
#include <simde/x86/avx512/unpackhi.h>
#include <simde/x86/avx512/unpacklo.h>

/* SIMDe 0.7.4 gives this name to four arguments, and lacks the other one. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16

static inline simde__m512i shift_right(simde__m512i a, int n) {
        int32_t dwords[16];

        simde_mm512_storeu_si512(dwords, a);
        for (int i = 0; i < 16; i++)
                dwords[i] >>= n;
        return simde_mm512_loadu_si512(dwords);
}

#undef _mm512_srai_epi32
#define _mm512_srai_epi32 shift_right

/* These take the place of the library's. */
#define RESIZE_EMULATED
#include "daemon/augment/resize_avx512.c"

#define FORMS_FROM RESIZE_CODE_AVX512
#define FORMS_TO   (RESIZE_CODE_AVX512 + 1)
#include "tests/unit/test_resize.c"
