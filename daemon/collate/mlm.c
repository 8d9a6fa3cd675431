#include "daemon/collate/mlm.h"

#include "daemon/collate/collate_layout.h"
#include "daemon/collate/elements.h"
#include "proto/order/philox.h"

/* A stream of draws has 2^18 words, so long samples take several: each has a number, from 1 on, as the steps of a
 * pipeline have. */
#define TOKENS_A_STREAM (1u << 16)

static bool is_special(const struct mlm_terms *terms, int64_t token) {
        for (uint32_t i = 0; i < terms->n_special; i++)
                if (token == terms->special[i])
                        return true;
        return false;
}

void mlm_hide(const struct mlm_terms *terms, uint64_t seed, uint32_t epoch, uint64_t sample, enum dlp_dtype dtype,
              uint8_t *tokens, uint64_t n, int64_t *labels) {
        uint64_t size = dlp_dtype_bytes(dtype);
        struct dlp_philox philox;

        for (uint64_t i = 0; i < n; i++) {
                int64_t token = element_whole(dtype, tokens + i * size);
                double becomes;
                uint32_t any;
                bool is_chosen;

                if (i % TOKENS_A_STREAM == 0)
                        dlp_philox_init(&philox, seed, epoch, sample, (uint16_t)(1 + i / TOKENS_A_STREAM % 65534));
                is_chosen = (double)dlp_philox_f32(&philox) < terms->p && !is_special(terms, token);
                becomes = (double)dlp_philox_f32(&philox);
                any = dlp_philox_below(&philox, terms->vocab);
                labels[i] = is_chosen ? token : LABEL_IGNORED;
                if (is_chosen && becomes < terms->masked)
                        element_set_whole(dtype, tokens + i * size, terms->mask);
                else if (is_chosen && becomes < terms->masked + terms->random)
                        element_set_whole(dtype, tokens + i * size, any);
        }
}
