#include "daemon/data/formats/webdataset/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/webdataset/links.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define BLOCK        512u
#define WINDOW_BYTES (64u << 10) /* read at once while members are small; after a large one only a block */
#define PAX_MAX      (1u << 20)  /* bytes of one pax header or long name: far more than any program writes */

struct tar {
        int fd;
        uint64_t n_bytes;
        uint64_t at; /* of the next header */
        uint8_t window[WINDOW_BYTES];
        uint64_t window_at;
        size_t n_window;
        char name[PATH_MAX];
        bool has_name; /* given by a header before the member's own */
        char target[PATH_MAX];
        bool has_target;
        bool has_size;
        uint64_t size;
        struct tar_links *links; /* of an archive with links, from the first one on */
        bool is_sparse;
        bool is_cut;
        struct why passed_over;
};

#define TYPE 156 /* offset of the byte that gives the type of a header */

/* Compression is recognised by the first bytes: names are not reliable. */
static int tar_check_plain(int fd, uint64_t n_bytes, struct why *why) {
        static const struct {
                const char *bytes;
                size_t n;
                const char *name, *command;
        } PACKERS[] = {
                { "\x1f\x8b\x08", 3, "gzip", "gunzip" },
                { "BZh", 3, "bzip2", "bunzip2" },
                { "\xfd"
                  "7zXZ",
                  5, "xz", "unxz" },
                { "\x28\xb5\x2f\xfd", 4, "zstd", "unzstd" },
                { "\x04\x22\x4d\x18", 4, "lz4", "unlz4" },
                { "\x1f\x9d", 2, "compress", "uncompress" },
        };
        uint8_t bytes[10] = { 0 };
        size_t n = n_bytes < sizeof(bytes) ? (size_t)n_bytes : sizeof(bytes);
        int r = indexing_read_at(fd, bytes, n, 0);

        if (r < 0)
                return why_errno(why, r, "at byte 0");
        for (size_t i = 0; i < ARRAY_SIZE(PACKERS); i++) {
                if (memcmp(bytes, PACKERS[i].bytes, PACKERS[i].n) != 0)
                        continue;
                if (PACKERS[i].bytes[0] == 'B' && memcmp(bytes + 4, "1AY&SY", 6) != 0) /* a member may be called BZh */
                        continue;
                return why_set(why, -ENOTSUP,
                               "the archive is compressed (%s), so that no sample can be read by itself; stage it with "
                               "prepare = \"convert\", or decompress it, for instance with %s",
                               PACKERS[i].name, PACKERS[i].command);
        }
        return 0;
}

int tar_open(int fd, uint64_t n_bytes, struct tar **ret_tar, struct why *why) {
        int r = tar_check_plain(fd, n_bytes, why);
        struct tar *tar = r < 0 ? NULL : calloc(1, sizeof(*tar));

        if (r < 0)
                return r;
        if (!tar)
                return why_errno(why, -ENOMEM, "a window into the archive");
        tar->fd = fd;
        tar->n_bytes = n_bytes;
        *ret_tar = tar;
        return 0;
}

static void tar_close(struct tar *tar) {
        if (tar)
                tar_links_free(tar->links);
        free(tar);
}

void tar_closep(struct tar **tar) {
        tar_close(*tar);
}

bool tar_is_cut(const struct tar *tar) {
        return tar->is_cut;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* The block at `offset`, which lies within the file. One window holds many small members. */
static int tar_read_block(struct tar *tar, uint64_t offset, const uint8_t **ret_block, struct why *why) {
        uint64_t n = tar->n_bytes - offset;
        bool is_near = offset < tar->window_at + 2 * WINDOW_BYTES;
        int r;

        if (offset < tar->window_at || offset + BLOCK > tar->window_at + tar->n_window) {
                n = n < WINDOW_BYTES ? n : WINDOW_BYTES;
                if (!is_near && n > 8 * BLOCK)
                        n = 8 * BLOCK;
                r = indexing_read_at(tar->fd, tar->window, (size_t)n, offset);
                if (r < 0)
                        return why_errno(why, r, "at byte %" PRIu64, offset);
                tar->window_at = offset;
                tar->n_window = (size_t)n;
        }
        *ret_block = tar->window + (offset - tar->window_at);
        return 0;
}

static int tar_damaged(const struct tar *tar, const char *what, struct why *why) {
        return why_set(why, -EBADMSG, "at byte %" PRIu64 ": %s", tar->at, what);
}

/* ---- numbers and checksums ------------------------------------------------------------------------------------- */

/* Octal digits between blanks, or base 256 if the first bit is set. Returns false for anything else or if it is too
 * large. */
static bool tar_read_number(const uint8_t *field, size_t n, uint64_t *ret_number) {
        uint64_t number = 0;
        size_t i = 0;

        if (field[0] & 0x80) {
                if (field[0] != 0x80) /* negative, or more than 2^63 in twelve bytes */
                        return false;
                for (i = 1; i < n; i++) {
                        if (number >> 56)
                                return false;
                        number = number << 8 | field[i];
                }
                *ret_number = number;
                return number <= INT64_MAX;
        }
        while (i < n && field[i] == ' ')
                i++;
        for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
                number = number << 3 | (uint64_t)(field[i] - '0'); /* twelve digits at most: 36 bits */
        for (; i < n; i++)
                if (field[i] != ' ' && field[i] != '\0')
                        return false;
        *ret_number = number;
        return true;
}

static bool is_zero(const uint8_t *block) {
        for (size_t i = 0; i < BLOCK; i++)
                if (block[i] != 0)
                        return false;
        return true;
}

/* Adds eight bytes at a time, in four lanes of 16 bits: in an archive of small members this is half of the time. */
static uint64_t tar_sum_of(const uint8_t *block) {
        const uint64_t every_other = 0x00ff00ff00ff00ffull;
        uint64_t lanes = 0; /* each of at most 64 * 2 * 255 */

        for (size_t i = 0; i < BLOCK; i += sizeof(uint64_t)) {
                uint64_t word;

                memcpy(&word, block + i, sizeof(word));
                lanes += (word & every_other) + (word >> 8 & every_other);
        }
        return (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48);
}

/* The sum of unsigned bytes, or of signed ones, as some old programs wrote. The checksum field itself counts as
 * blanks. */
static bool checksum_is_right(const uint8_t *block) {
        uint64_t said, sum = tar_sum_of(block), n_negative = 0;

        if (!tar_read_number(block + 148, 8, &said))
                return false;
        for (size_t i = 148; i < 156; i++)
                sum = sum - block[i] + ' ';
        if (said == sum)
                return true;
        for (size_t i = 0; i < BLOCK; i++)
                n_negative += block[i] >= 0x80 && (i < 148 || i >= 156);
        return n_negative * 256 <= sum && said == sum - n_negative * 256;
}

/* ---- headers before a member's own ----------------------------------------------------------------------------- */

static int set_text(const struct tar *tar, char into[PATH_MAX], bool *ret_has_it, const char *name, size_t n,
                    struct why *why) {
        if (n >= PATH_MAX || memchr(name, '\0', n))
                return tar_damaged(tar, "a name that is longer than 4095 bytes or has a NUL in it", why);
        memcpy(into, name, n);
        into[n] = '\0';
        *ret_has_it = true;
        return 0;
}

static int set_name(struct tar *tar, const char *name, size_t n, struct why *why) {
        return set_text(tar, tar->name, &tar->has_name, name, n, why);
}

static int set_target(struct tar *tar, const char *name, size_t n, struct why *why) {
        return set_text(tar, tar->target, &tar->has_target, name, n, why);
}

static int tar_read_long(struct tar *tar, uint64_t n_bytes, char **ret_text, struct why *why) {
        char *text;
        int r;

        if (n_bytes > PAX_MAX)
                return tar_damaged(tar, "a header of more than a megabyte", why);
        text = malloc(n_bytes + 1);
        if (!text)
                return why_errno(why, -ENOMEM, "tar");
        r = indexing_read_at(tar->fd, text, n_bytes, tar->at + BLOCK);
        if (r < 0) {
                free(text);
                return why_errno(why, r, "at byte %" PRIu64, tar->at + BLOCK);
        }
        text[n_bytes] = '\0';
        *ret_text = text;
        return 0;
}

static int take_long(struct tar *tar, uint8_t type, uint64_t n_bytes, struct why *why) {
        char *text = NULL;
        int r = tar_read_long(tar, n_bytes, &text, why);

        if (r == 0)
                r = (type == 'L' ? set_name : set_target)(tar, text, strlen(text), why);
        free(text);
        return r;
}

static int take_record(struct tar *tar, const char *key, size_t n_key, const char *value, size_t n_value,
                       struct why *why) {
        if (n_key == 4 && memcmp(key, "path", 4) == 0)
                return set_name(tar, value, n_value, why);
        if (n_key == 8 && memcmp(key, "linkpath", 8) == 0)
                return set_target(tar, value, n_value, why);
        if (n_key >= 10 && memcmp(key, "GNU.sparse", 10) == 0)
                tar->is_sparse = true;
        if (n_key != 4 || memcmp(key, "size", 4) != 0)
                return 0;
        tar->size = 0;
        for (size_t i = 0; i < n_value; i++) {
                if (value[i] < '0' || value[i] > '9' || tar->size > INT64_MAX / 10 - 10)
                        return tar_damaged(tar, "a pax header with an invalid size", why);
                tar->size = tar->size * 10 + (uint64_t)(value[i] - '0');
        }
        tar->has_size = true;
        return 0;
}

/* Records "LENGTH KEY=VALUE\n", one after the other. */
static int take_records(struct tar *tar, const char *text, size_t n_bytes, struct why *why) {
        while (n_bytes > 0) {
                size_t length = 0, n_digits = 0;
                const char *key, *equals;
                int r;

                while (n_digits < n_bytes && n_digits < 8 && text[n_digits] >= '0' && text[n_digits] <= '9')
                        length = length * 10 + (size_t)(text[n_digits++] - '0');
                if (n_digits == 0 || length > n_bytes || length < n_digits + 3 || text[n_digits] != ' ' ||
                    text[length - 1] != '\n')
                        return tar_damaged(tar, "a pax header that is damaged", why);
                key = text + n_digits + 1;
                equals = memchr(key, '=', length - n_digits - 2);
                if (!equals)
                        return tar_damaged(tar, "a pax header that is damaged", why);
                r = take_record(tar, key, (size_t)(equals - key), equals + 1, (size_t)(text + length - 2 - equals),
                                why);
                if (r < 0)
                        return r;
                text += length;
                n_bytes -= length;
        }
        return 0;
}

static int take_pax(struct tar *tar, uint64_t n_bytes, struct why *why) {
        char *text = NULL;
        int r = tar_read_long(tar, n_bytes, &text, why);

        if (r == 0)
                r = take_records(tar, text, n_bytes, why);
        free(text);
        return r;
}

/* Values for all members from here on: comments, times, owners. */
static int check_global(struct tar *tar, uint64_t n_bytes, struct why *why) {
        bool had_name = tar->has_name, had_size = tar->has_size, was_sparse = tar->is_sparse;
        bool had_target = tar->has_target;
        int r = take_pax(tar, n_bytes, why);

        if (r == 0 && (tar->has_name != had_name || tar->has_size != had_size || tar->is_sparse != was_sparse ||
                       tar->has_target != had_target))
                return why_set(why, -ENOTSUP,
                               "at byte %" PRIu64 ": a global pax header that gives all members one name "
                               "or size",
                               tar->at);
        return r;
}

/* ---- members --------------------------------------------------------------------------------------------------- */

/* The prefix exists in ustar. GNU's own format uses its place for something else. */
static int name_of_header(struct tar *tar, const uint8_t *block, struct why *why) {
        size_t n_name = strnlen((const char *)block, 100), n_prefix = 0;
        char whole[256 + 2];

        if (memcmp(block + 257, "ustar\0", 6) == 0)
                n_prefix = strnlen((const char *)block + 345, 155);
        memcpy(whole, block + 345, n_prefix);
        if (n_prefix > 0)
                whole[n_prefix++] = '/';
        memcpy(whole + n_prefix, block, n_name);
        return set_name(tar, whole, n_prefix + n_name, why);
}

static bool tar_is_regular(uint8_t type) {
        return type == '0' || type == '\0' || type == '7';
}

/* Returns false for what has no bytes: directories, devices, and what is not known. */
static bool tar_kind_of(uint8_t type, enum tar_kind *ret_kind) {
        *ret_kind = type == '1' ? TAR_HARD_LINK : type == '2' ? TAR_SOFT_LINK : TAR_FILE;
        return type == '1' || type == '2' || tar_is_regular(type);
}

static uint64_t blocks_of(uint64_t n_bytes) {
        return (n_bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* Two blocks of zeroes end an archive, and more of them may follow. Anything else after them was appended, and other
 * readers never see it. */
static int tar_check_end(struct tar *tar, struct why *why) {
        for (uint64_t at = tar->at; at + BLOCK <= tar->n_bytes && at < tar->at + (1u << 20); at += BLOCK) {
                const uint8_t *block;
                int r = tar_read_block(tar, at, &block, why);

                if (r < 0)
                        return r;
                if (!is_zero(block))
                        return why_set(why, -EBADMSG,
                                       "at byte %" PRIu64 ": something was appended after the archive's end at byte "
                                       "%" PRIu64 ", which readers of tar do not see; make it one archive",
                                       at, tar->at);
        }
        return TAR_END;
}

/* A header of a member, or one that describes the next member. Returns 0 for a regular file. */
#define GOES_ON 2
static int tar_take_header(struct tar *tar, const uint8_t *block, struct tar_member *ret_member, struct why *why) {
        uint8_t type = block[TYPE];
        uint64_t size, begin = tar->at;
        enum tar_kind kind;
        int r = 0;

        if (!checksum_is_right(block))
                return tar_damaged(tar, "the header's checksum is wrong: the archive is damaged or not a tar archive",
                                   why);
        if (!tar_read_number(block + 124, 12, &size))
                return tar_damaged(tar, "an invalid size", why);
        if (tar->has_size && type != 'x' && type != 'g' && type != 'L' && type != 'K')
                size = tar->size;
        if (type == '1' || type == '2' || (type >= '3' && type <= '6'))
                size = 0; /* links, devices and directories have no bytes, whatever their header says */
        if (size > tar->n_bytes || blocks_of(size) > tar->n_bytes - tar->at - BLOCK) {
                tar->is_cut = true;
                return tar_damaged(tar, "a member that ends after the archive does: it was cut", why);
        }
        if (type == 'x' || type == 'L' || type == 'K') {
                r = type == 'x' ? take_pax(tar, size, why) : take_long(tar, type, size, why);
                tar->at += BLOCK + blocks_of(size);
                return r < 0 ? r : GOES_ON;
        }
        if (type == 'g') {
                r = check_global(tar, size, why);
                tar->at += BLOCK + blocks_of(size);
                return r < 0 ? r : GOES_ON;
        }
        if ((tar_is_regular(type) && tar->is_sparse) || type == 'S')
                return why_set(why, -ENOTSUP,
                               "at byte %" PRIu64
                               ": a sparse member, whose bytes do not lie there as they are; make the "
                               "archive without --sparse",
                               tar->at);
        if (!tar->has_name)
                r = name_of_header(tar, block, why);
        if (r == 0 && !tar->has_target)
                r = set_target(tar, (const char *)block + 157, strnlen((const char *)block + 157, 100), why);
        tar->at += BLOCK + blocks_of(size);
        tar->has_name = tar->has_target = tar->has_size = tar->is_sparse = false;
        if (r < 0 || !tar_kind_of(type, &kind) || (tar->name[0] && tar->name[strlen(tar->name) - 1] == '/'))
                return r < 0 ? r : GOES_ON; /* a name that ends in a slash: a directory of an old program */
        *ret_member = (struct tar_member){ .name = tar->name,
                                           .target = kind == TAR_FILE ? "" : tar->target,
                                           .kind = kind,
                                           .header = begin,
                                           .offset = begin + BLOCK,
                                           .n_bytes = size,
                                           .end = tar->at };
        return 0;
}

int tar_step(struct tar *tar, struct tar_member *ret_member, struct why *why) {
        const uint8_t *block;
        int r;

        do {
                if (tar->at + BLOCK > tar->n_bytes) {
                        tar->is_cut = true;
                        return tar_damaged(tar, "the archive has no end mark: it was cut", why);
                }
                r = tar_read_block(tar, tar->at, &block, why);
                if (r < 0)
                        return r;
                if (is_zero(block))
                        return tar_check_end(tar, why);
                r = tar_take_header(tar, block, ret_member, why);
        } while (r == GOES_ON);
        return r;
}

/* ---- links ----------------------------------------------------------------------------------------------------- */

const char *tar_plain_name(const char *name) {
        while (name[0] == '.' && name[1] == '/')
                name += 2;
        return name;
}

static bool is_of_sample(const struct tar_member *member) {
        struct member_place place;
        const char *refusal;

        return member_name_read(member->name, PATH_MAX, &place, &refusal) == MEMBER_IS_FIELD;
}

/* A symbolic link that leads nowhere is passed over, as by a program that reads what was unpacked: many archives have
 * some that led elsewhere. A hard link cannot be unpacked. Returns 0, GOES_ON, or an errno with `why`. */
static int tar_resolve(struct tar *tar, const atomic_bool *cancel, struct tar_member *member, struct why *why) {
        int r;

        if (!is_of_sample(member))
                return GOES_ON;
        r = tar->links ? 0 : tar_links_read(tar->fd, tar->n_bytes, cancel, &tar->links, why);
        if (r < 0)
                return r;
        r = tar_links_find(tar->links, member, member);
        if (r == 0 || r == TAR_LINK_IS_FOLDER)
                return r == 0 ? 0 : GOES_ON;
        if (tar_links_are_cut(tar->links) && (r == TAR_LINK_LEADS_NOWHERE || r == -ENOENT))
                tar->is_cut = true;
        else if (r == TAR_LINK_LEADS_NOWHERE || r == TAR_LINK_LEADS_OUT) {
                indexing_count_hidden();
                why_set(&tar->passed_over, 0, "\"%s\" is a symbolic link to \"%s\"", member->name, member->target);
                return GOES_ON;
        }
        return why_set(why, -EBADMSG, "at byte %" PRIu64 ": \"%s\" is a %s link to \"%s\", %s; make the archive anew%s",
                       member->header, member->name, member->kind == TAR_SOFT_LINK ? "symbolic" : "hard",
                       member->target, r == -ELOOP ? "which leads back to it" : "which the archive does not have",
                       member->kind == TAR_SOFT_LINK ? "" : ", for instance with tar --hard-dereference");
}

int tar_next(struct tar *tar, const atomic_bool *cancel, struct tar_member *ret_member, struct why *why) {
        int r;

        do {
                r = tar_step(tar, ret_member, why);
                if (r == 0 && ret_member->kind != TAR_FILE)
                        r = tar_resolve(tar, cancel, ret_member, why);
        } while (r == GOES_ON);
        return r;
}

const char *tar_passed_over(const struct tar *tar) {
        return tar->passed_over.text;
}
