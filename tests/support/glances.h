/* What a daemon says at two moments, as a test of dlctl top wants it. */
#pragma once

#include "client/dlctl/glance.h"

#define SECOND 1000000000ull

#define TOLD_RANKS_MAX 64u
#define TOLD_JOBS_MAX  200u

struct told {
        struct glance glance;
        Dlp__StatusReply status;
        Dlp__Node node;
        size_t n_ranks;
        Dlp__Job jobs[TOLD_JOBS_MAX];
        struct look looks[TOLD_JOBS_MAX];
        Dlp__Rank ranks[TOLD_JOBS_MAX * TOLD_RANKS_MAX];
        Dlp__Rank *rank_pointers[TOLD_JOBS_MAX * TOLD_RANKS_MAX];
        Dlp__Waiting waiting[TOLD_JOBS_MAX * TOLD_RANKS_MAX];
        Dlp__Stage stages[2];
        Dlp__Stage *stage_pointers[2];
        Dlp__Dataset datasets[8];
        const Dlp__Dataset *dataset_pointers[8];
};

/* A node with four workers, and no job yet. */
void tell(struct told *told, uint64_t now_ns);

/* One more job; what follows is of it. Texts stay the caller's. */
Dlp__Job *tell_job(struct told *told, const char *name, const char *dataset, uint64_t n_samples);

/* A rank that has waited and worked so long. */
Dlp__Rank *tell_rank(struct told *told, uint32_t number, uint64_t age_ns, uint64_t wait_ns, uint64_t busy_ns);

void tell_stage(struct told *told, size_t i, const char *name, uint64_t taken_ns);
Dlp__Dataset *tell_dataset(struct told *told, const char *name, const char *state);
