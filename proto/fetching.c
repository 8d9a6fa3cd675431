#include "proto/fetching.h"

uint64_t dlp_horizon_ns(uint64_t ahead_s, uint64_t late_ns) {
        uint64_t ahead_ns = ahead_s * 1000000000ull;

        return ahead_ns > DLP_AHEAD_LATE * late_ns ? ahead_ns : DLP_AHEAD_LATE * late_ns;
}

bool dlp_is_piece(uint64_t n_bytes, uint64_t n_chunk) {
        return n_bytes <= DLP_PIECE_BYTES && n_bytes <= n_chunk / 4;
}

bool dlp_is_dense(uint64_t n_marked, uint64_t n_chunk) {
        return n_marked >= n_chunk / 4;
}

uint64_t dlp_reserve(uint64_t limit, uint64_t n_bytes) {
        return n_bytes < limit / DLP_AHEAD_SHARE ? n_bytes : limit / DLP_AHEAD_SHARE;
}

bool dlp_may_mark(uint64_t limit, uint64_t n_marked) {
        return n_marked == 0 || n_marked + DLP_CHUNK_BYTES <= limit / DLP_AHEAD_SHARE;
}

uint64_t dlp_next_use(const struct dlp_uses_place *place, uint32_t first, uint32_t next) {
        uint64_t n_left = place->n_samples - place->k;

        if (first != DLP_USE_NEVER && first >= place->k)
                return (first - place->k) * place->sample_ns;
        if (place->is_last_epoch)
                return UINT64_MAX;
        return (n_left + (next != DLP_USE_NEVER ? next : place->n_samples)) * place->sample_ns;
}

#define CHOSEN_MAX 64u /* that are compared, of eight times as many that are drawn */

uint64_t dlp_choose_victim(const struct dlp_victims *victims, uint64_t soonest_ns, uint64_t *dice) {
        uint64_t victim = UINT64_MAX;

        for (uint32_t i = 0, n = 0; i < 8 * CHOSEN_MAX && n < CHOSEN_MAX; i++) {
                uint64_t chunk, ns;

                *dice = *dice * 6364136223846793005ull + 1442695040888963407ull;
                chunk = (*dice >> 33) % victims->n_chunks;
                if (!victims->may_go(victims->userdata, chunk))
                        continue;
                n++;
                ns = victims->next_use(victims->userdata, chunk);
                if (ns > soonest_ns) {
                        soonest_ns = ns;
                        victim = chunk;
                }
        }
        return victim;
}
