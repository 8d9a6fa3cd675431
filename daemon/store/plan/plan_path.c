/* Paths of a plan: strangers wrote them, and they become files here. */

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

#include "daemon/store/plan/plan_private.h"
#include "proto/base/utf8.h"

#define PART_MAX 255u /* bytes: NAME_MAX of every file system of Linux */

static int path_refuse(struct why *why, const char *path, size_t n_bytes, const char *what) {
        return why_set(why, -EINVAL, "path \"%.*s\" %s", n_bytes < INT_MAX ? (int)n_bytes : INT_MAX, path, what);
}

static const char *what_is_wrong_with_bytes(const char *path, size_t n_bytes) {
        for (size_t i = 0; i < n_bytes;) {
                uint32_t point;
                size_t n = utf8_decode(path + i, n_bytes - i, &point);

                if (n == 0)
                        return "is not UTF-8; rename the file at the origin";
                if (point < ' ' || (point >= 0x7f && point < 0xa0))
                        return "has a control character in it; rename the file at the origin";
                i += n;
        }
        return NULL;
}

static const char *what_is_wrong_with_part(const char *part, size_t n) {
        if (n == 0)
                return "has an empty part (two slashes, or one at its end); rename the file at the origin";
        if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
                return "has a \".\" or \"..\" in it, which would lead elsewhere; rename the file at the origin";
        return n > PART_MAX ? "has a part of more than 255 bytes" : NULL;
}

static uint32_t path_depth_of(const char *path, size_t n_bytes) {
        uint32_t n = 0;

        for (size_t i = 0; i < n_bytes; i++)
                n += path[i] == '/';
        return n;
}

int plan_path_check(const char *path, size_t n_bytes, struct why *why) {
        const char *end = path + n_bytes;
        const char *wrong;

        if (n_bytes == 0)
                return why_set(why, -EINVAL, "path \"\" is empty");
        if (n_bytes >= PATH_MAX)
                return path_refuse(why, path, n_bytes, "is longer than paths may be here");
        wrong = what_is_wrong_with_bytes(path, n_bytes);
        if (wrong)
                return path_refuse(why, path, n_bytes, wrong);
        if (path[0] == '/')
                return path_refuse(why, path, n_bytes, "is absolute; it must be relative to the dataset's folder");
        if (n_bytes >= strlen(PLAN_UNFINISHED) && memcmp(path, PLAN_UNFINISHED, strlen(PLAN_UNFINISHED)) == 0)
                return path_refuse(why, path, n_bytes,
                                   "begins with \"" PLAN_UNFINISHED "\", the name of unfinished files");
        if (path_depth_of(path, n_bytes) > PLAN_DEPTH_MAX)
                return path_refuse(why, path, n_bytes, "lies in more than 64 folders");
        for (const char *part = path; part;) {
                const char *slash = memchr(part, '/', (size_t)(end - part));

                wrong = what_is_wrong_with_part(part, (size_t)((slash ? slash : end) - part));
                if (wrong)
                        return path_refuse(why, path, n_bytes, wrong);
                part = slash ? slash + 1 : NULL;
        }
        return 0;
}

/* ---- cases --------------------------------------------------------------------------------------------------- */

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t locale_of_cases; /* 0: glibc without it; only ASCII is folded then */

static void make_locale(void) {
        locale_of_cases = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint32_t path_fold(uint32_t point) {
        if (point < 0x80)
                return point >= 'A' && point <= 'Z' ? point + 32 : point;
        pthread_once(&locale_once, make_locale);
        return locale_of_cases ? (uint32_t)towlower_l((wint_t)point, locale_of_cases) : point;
}

static size_t encode_utf8(uint32_t point, char *ret_bytes) {
        size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

        if (n == 1) {
                ret_bytes[0] = (char)point;
                return 1;
        }
        for (size_t i = n - 1; i > 0; i--, point >>= 6)
                ret_bytes[i] = (char)(0x80 | (point & 0x3f));
        ret_bytes[0] = (char)((0xf00u >> n) | point);
        return n;
}

/* A letter may grow (two bytes to three): PLAN_FOLD_SIZE has room for the worst. */
size_t plan_path_fold(const char *path, char ret_folded[PLAN_FOLD_SIZE]) {
        size_t n_bytes = strlen(path), n_folded = 0;

        for (size_t i = 0; i < n_bytes && n_folded + 4 < PLAN_FOLD_SIZE;) {
                uint32_t point;
                size_t n = utf8_decode(path + i, n_bytes - i, &point);

                if (n == 0) { /* not a path that was checked: byte by byte */
                        ret_folded[n_folded++] = path[i++];
                        continue;
                }
                n_folded += encode_utf8(path_fold(point), ret_folded + n_folded);
                i += n;
        }
        ret_folded[n_folded] = '\0';
        return n_folded;
}
