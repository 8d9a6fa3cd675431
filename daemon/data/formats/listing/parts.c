#include "daemon/data/formats/listing/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"

#define TAIL_BYTES (4u << 10)  /* that are read after a piece at first: most records end there */
#define MORE_BYTES (64u << 10) /* that are read at once of a longer one */

struct part_slot {
        struct text_listing *part;
        struct why why;      /* nobody reads it */
        bool is_read;        /* and nothing was wrong */
        uint64_t begin, end; /* of its records */
};

struct parts_pass {
        struct text_listing *listing;
        const struct listing_parts *parts;
        void *userdata;
        struct cuts *cuts;
        struct part_slot slots[CUTS_SLOTS];
        struct {
                int fd;
                uint64_t n_bytes;
                uint64_t at; /* all records before it were added */
        } file;              /* that is read */
};

/* ---- in any thread: a part ------------------------------------------------------------------------------------- */

static int parts_open_file(void *userdata, size_t idx, int64_t *settled_ns, struct stat *ret_status, struct why *why) {
        const struct parts_pass *pass = userdata;
        const struct text_listing *listing = pass->listing;

        return listed_open(listing->root_fd, listing->files->root, listing->found.names[idx], settled_ns, ret_status,
                           why);
}

/* Its window on a piece, with the byte before it; the memory of the last one stays. */
static int parts_begin_window(const struct parts_pass *pass, struct text_listing *part, const struct cut *cut) {
        struct text_window *window = &part->window;
        struct why why;

        part->is_inside = cut->begin > 0;
        *window = (struct text_window){ .fd = cut->fd,
                                        .n_file = cut->n_file,
                                        .bytes = window->bytes,
                                        .memory = window->memory,
                                        .offset = cut->begin - part->is_inside,
                                        .n_lines = part->is_inside,
                                        .stop = cut->end,
                                        .n_read = (size_t)(cut->end - cut->begin) + TAIL_BYTES,
                                        .n_max = CUTS_LIMITS.long_bytes };
        if (!part->is_inside)
                return text_window_begin(window, &why);
        return pass->parts->find ? text_window_read_on(window, &why) : text_window_find_line(window, &why);
}

static int parts_read_part(const struct parts_pass *pass, struct part_slot *slot, struct cuts *cuts,
                           const struct cut *cut) {
        const struct text_listing *listing = pass->listing;
        struct text_listing *part = slot->part;
        const struct stat none = { 0 };
        int r;

        pass->parts->clear(part);
        part->files = listing->files;
        part->why = &slot->why;
        part->format = listing->format;
        part->n_samples = 0;
        growing_clear(&part->names);
        growing_clear(&part->listed);
        r = listing_begin_file(part, listing->found.names[cut->idx_file], &none);
        if (r == 0)
                r = parts_begin_window(pass, part, cut);
        part->window.n_read = MORE_BYTES;
        if (r == 0 && pass->parts->find)
                r = pass->parts->find(part, cuts, cut);
        slot->begin = cut->begin > 0 ? text_window_place(&part->window) : 0;
        if (r == 0)
                r = pass->parts->read(part, part);
        slot->end = text_window_place(&part->window);
        return r;
}

static void look(void *userdata, struct cuts *cuts, const struct cut *cut) {
        struct parts_pass *pass = userdata;
        struct part_slot *slot = &pass->slots[cut->idx_slot];

        slot->is_read = false;
        if (!slot->part)
                slot->part = pass->parts->make(pass->userdata);
        if (slot->part)
                slot->is_read = parts_read_part(pass, slot, cuts, cut) == 0;
}

/* ---- the caller's thread --------------------------------------------------------------------------------------- */

/* The records from pass->file.at on that begin before `stop`, or all; without parts. */
static int read_directly(struct parts_pass *pass, uint64_t stop) {
        struct text_listing *listing = pass->listing;
        struct text_window *window = &listing->window;
        struct why detail;
        int r = 0;

        listing->is_inside = pass->file.at > 0;
        *window = (struct text_window){ .fd = pass->file.fd,
                                        .n_file = pass->file.n_bytes,
                                        .bytes = window->bytes,
                                        .memory = window->memory,
                                        .offset = pass->file.at,
                                        .n_lines = listing->is_inside ? window->n_lines : 0,
                                        .stop = stop };
        if (!listing->is_inside)
                r = text_window_begin(window, &detail);
        if (r < 0)
                return listing_refuse(listing, 0, r, &detail);
        r = pass->parts->read(listing, pass->userdata);
        pass->file.at = text_window_place(window);
        return r;
}

static int parts_take_part(struct parts_pass *pass, struct part_slot *slot) {
        struct text_listing *listing = pass->listing;
        uint64_t base = slot->begin > 0 ? listing->window.n_lines - 1 : 0;
        int r = pass->parts->take(pass->userdata, slot->part, base);

        if (r != 0)
                return r;
        listing->window.n_lines = base + slot->part->window.n_lines;
        listing->n_samples += slot->part->n_samples;
        pass->file.at = listing->window.offset = slot->end; /* read_directly() begins the window anew */
        listing->window.at = 0;
        return listing_look_up(listing, 0);
}

static int take_pieces(struct parts_pass *pass) {
        struct cut cut;
        int r = 0;

        while (r == 0 && cuts_next(pass->cuts, &cut) == 0) {
                struct part_slot *slot = &pass->slots[cut.idx_slot];

                if (pass->file.at < cut.end) { /* else a record reaches over all of it */
                        r = slot->is_read && slot->begin == pass->file.at ? parts_take_part(pass, slot) : PARTS_AGAIN;
                        if (r == PARTS_AGAIN)
                                r = read_directly(pass, cut.end);
                }
                cuts_take(pass->cuts, cut.number + 1);
        }
        return r;
}

/* What the first file begins with is read without parts: the names of columns are known then, and a small file needs no
 * threads. */
static int parts_read_begin(struct parts_pass *pass) {
        bool is_small = pass->file.n_bytes <= CUTS_LIMITS.cut_bytes;
        int r = read_directly(pass, is_small ? 0 : CUTS_LIMITS.cut_bytes);

        if (r == 0)
                cuts_start(pass->cuts, pass->file.at);
        return r;
}

static int parts_read_file(struct parts_pass *pass, size_t idx) {
        struct text_listing *listing = pass->listing;
        struct stat status;
        int r = cuts_file(pass->cuts, idx, &pass->file.fd, &status, listing->why);

        if (r == 0)
                r = listing_begin_file(listing, listing->found.names[idx], &status);
        if (r < 0)
                return r;
        pass->file.n_bytes = (uint64_t)status.st_size;
        pass->file.at = listing->window.offset = listing->window.at = 0;
        if (idx == 0)
                r = parts_read_begin(pass);
        else if (pass->file.n_bytes == 0)
                r = read_directly(pass, 0);
        return r < 0 ? r : take_pieces(pass);
}

int parts_walk(struct text_listing *listing, const struct listing_parts *parts, void *userdata) {
        struct parts_pass *pass = calloc(1, sizeof(*pass));
        int r = -ENOMEM;

        if (pass) {
                const struct cuts_work work = {
                        .files = { .n = listing->found.n, .open = parts_open_file, .userdata = pass },
                        .look = look,
                        .userdata = pass,
                };

                *pass = (struct parts_pass){ .listing = listing, .parts = parts, .userdata = userdata };
                r = cuts_new(&work, &pass->cuts);
        }
        if (r < 0)
                r = index_builder_refused(r, listing->files->root, listing->why);
        for (size_t i = 0; r == 0 && i < listing->found.n; i++)
                r = parts_read_file(pass, i);
        if (pass) {
                cuts_free(pass->cuts);
                for (size_t i = 0; i < CUTS_SLOTS; i++)
                        if (pass->slots[i].part)
                                parts->free(pass->slots[i].part);
        }
        text_window_fini(&listing->window);
        free(pass);
        return r;
}
