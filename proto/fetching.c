#include "proto/fetching.h"

uint64_t dlp_horizon_ns(uint64_t ahead_s, uint64_t late_ns) {
        uint64_t ahead_ns = ahead_s * 1000000000ull;

        return ahead_ns > DLP_AHEAD_LATE * late_ns ? ahead_ns : DLP_AHEAD_LATE * late_ns;
}
