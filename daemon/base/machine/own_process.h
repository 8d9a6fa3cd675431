/* base/machine/own_process.h: what this process takes of the machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct own_process {
        uint64_t cpu_ns;         /* of all threads, in user and system mode */
        uint64_t resident_bytes; /* 0: not known, as the next two */
        uint64_t virtual_bytes;
        uint64_t n_fds;
        uint64_t n_fds_max;
};

/* Reads a file and a folder of /proc; what these do not tell is left out. Any thread. */
void own_process(struct own_process *ret_process);

/* Finds both sizes, in pages, in the text of /proc/self/statm. False if it is not such a text. For tests. */
bool own_process_parse(const char *text, uint64_t *ret_virtual, uint64_t *ret_resident);
