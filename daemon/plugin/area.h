/* plugin/area.h: the memory that the daemon shares with a process of a plug-in. Private to this floor.
 *
 * A memfd that can grow and not shrink, so that no access to a mapping of it fails: first what the plug-in gets, then
 * what it delivers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

struct area {
        int fd;
        uint8_t *bytes; /* NULL: not mapped */
        uint64_t n_bytes, output_offset;
        bool is_input_fixed; /* the beginning is mapped read-only: of the process */
};

/* -errno. */
int area_make(struct area *ret_area);

/* Of the process: the descriptor is its own. */
void area_take(struct area *area, int fd);

void area_fini(struct area *area);

/* The daemon's side: room for both. -ENOMEM. */
int area_reserve(struct area *area, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why);

/* The process's side: maps it as the daemon has laid it out. -errno. */
int area_map(struct area *area, uint64_t n_bytes, uint64_t output_offset);

/* Gives the memory back. */
void area_trim(struct area *area);
