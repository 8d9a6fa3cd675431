/* base/cell/cell_messages.h: what the daemon and its cells say to each other.
 *
 * A cell is a process of the daemon's own program (base/cell/cell.h). Both are the same build, so messages are structs.
 * Each is one packet of a socketpair and begins with a struct cell_head. The cell believes the daemon. The daemon
 * believes no word of a cell: strangers' bytes may have taken it over, or what is loaded into it has a mistake.
 *
 *      daemon                                  cell
 *      setup: what its kind needs  -------->   makes its tools, confines itself
 *                                  <--------   hello: ready, or why not
 *      memory, with a descriptor   -------->   maps it; orders name it by its number
 *      order                       -------->   does it
 *                                  <--------   answer
 *      forget                      -------->   unmaps the memory. No answer
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

#define CELL_ARGUMENT     "--cell"    /* the program's first argument, which no person writes; its kind follows */
#define CELL_CHANNEL      3           /* the cell's descriptor of the socketpair */
#define CELL_MESSAGE_MAX  (16u << 10) /* bytes of a packet, in both directions */
#define CELL_MEMORIES_MAX 128u        /* that a cell has mapped at once */

enum cell_word {
        CELL_SETUP = 1,
        CELL_HELLO,
        CELL_MEMORY,
        CELL_FORGET,
        CELL_ORDER,
        CELL_ANSWER,
};

struct cell_head {
        uint32_t word;   /* enum cell_word */
        int32_t result;  /* hello, answer: 0 or a negative errno */
        uint64_t number; /* of an order, and of its answer; of a memory */
};

/* How much a cell gives up before it has an order (base/cell/confine.h). */
enum cell_trust {
        CELL_STRANGE,  /* it interprets what strangers made: no files, no network, no threads, no processes */
        CELL_INSTALLED /* it runs what the administrator has installed: it keeps the daemon's rights */
};

/* What its kind needs follows. */
struct cell_setup {
        struct cell_head head;
        enum cell_trust trust;
};

struct cell_hello {
        struct cell_head head;
        struct why why;
};

/* Comes with its descriptor. */
struct cell_memory_word {
        struct cell_head head;
        uint64_t n_bytes;
        bool is_writable;
};

/* Where something lies: in which memory, from its first byte. */
struct cell_place {
        uint64_t memory;
        uint64_t offset, n_bytes;
};
