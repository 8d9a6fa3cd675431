#include "daemon/decode/vorbis_codebooks.h"

#include <ogg/ogg.h>
#include <string.h>

#define BOOK_SYNC      0x564342
#define LENGTH_MAX     32 /* bits of a code word */
#define ENTRY_OVERHEAD 8u

static int vorbis_codebooks_bits_of(uint64_t number) {
        int n = 0;

        for (; number > 0; number >>= 1)
                n++;
        return n;
}

/* Code words of growing length, and how many there are of each length. */
static bool skip_ordered_lengths(oggpack_buffer *bits, uint64_t n_entries) {
        long length = oggpack_read(bits, 5) + 1;
        uint64_t n_done = 0;

        for (; n_done < n_entries && length <= LENGTH_MAX; length++) {
                long n = oggpack_read(bits, vorbis_codebooks_bits_of(n_entries - n_done));

                if (n < 0 || (uint64_t)n > n_entries - n_done)
                        return false;
                n_done += (uint64_t)n;
        }
        return n_done == n_entries;
}

static bool skip_lengths(oggpack_buffer *bits, uint64_t n_entries) {
        bool is_sparse = oggpack_read(bits, 1) == 1;

        for (uint64_t i = 0; i < n_entries; i++) {
                long is_used = is_sparse ? oggpack_read(bits, 1) : 1;

                if (is_used < 0 || (is_used == 1 && oggpack_read(bits, 5) < 0))
                        return false;
        }
        return true;
}

/* The largest number whose n_dims-th power is at most n_entries; n_dims is at least 1. */
static uint64_t vorbis_codebooks_root_of(uint64_t n_entries, uint64_t n_dims) {
        uint64_t root = 1;

        for (;;) {
                uint64_t power = 1;

                for (uint64_t i = 0; i < n_dims && power <= n_entries; i++)
                        power *= root + 1;
                if (power > n_entries)
                        return root;
                root++;
        }
}

static bool skip_values(oggpack_buffer *bits, uint64_t n_entries, uint64_t n_dims) {
        long type = oggpack_read(bits, 4), n_bits;
        uint64_t n;

        if (type == 0)
                return true;
        if (type != 1 && type != 2)
                return false;
        oggpack_adv(bits, 64); /* the least value, and the step between two */
        n_bits = oggpack_read(bits, 4) + 1;
        if (oggpack_read(bits, 1) < 0 || n_entries == 0 || n_dims == 0)
                return false;
        n = type == 1 ? vorbis_codebooks_root_of(n_entries, n_dims) : n_entries * n_dims;
        for (uint64_t i = 0; i < n; i++)
                if (oggpack_read(bits, (int)n_bits) < 0)
                        return false;
        return true;
}

static bool skip_book(oggpack_buffer *bits, uint64_t *n_left) {
        long sync = oggpack_read(bits, 24), n_dims = oggpack_read(bits, 16), n_entries = oggpack_read(bits, 24);
        long is_ordered = oggpack_read(bits, 1);
        uint64_t n;

        if (sync != BOOK_SYNC || is_ordered < 0)
                return false;
        n = (uint64_t)n_entries * ((uint64_t)n_dims + ENTRY_OVERHEAD);
        if (n > *n_left)
                return false;
        *n_left -= n;
        if (!(is_ordered ? skip_ordered_lengths(bits, (uint64_t)n_entries) : skip_lengths(bits, (uint64_t)n_entries)))
                return false;
        return skip_values(bits, (uint64_t)n_entries, (uint64_t)n_dims);
}

bool vorbis_codebooks_fit(const uint8_t *packet, size_t n_bytes) {
        uint64_t n_left = VORBIS_CODEBOOKS_MAX;
        oggpack_buffer bits;
        long n_books;

        if (n_bytes < 8 || n_bytes > INT32_MAX || memcmp(packet, "\x05vorbis", 7) != 0)
                return false;
        oggpack_readinit(&bits, (unsigned char *)(uintptr_t)packet + 7, (int)n_bytes - 7);
        n_books = oggpack_read(&bits, 8) + 1;
        for (long i = 0; i < n_books; i++)
                if (!skip_book(&bits, &n_left))
                        return false;
        return true;
}
