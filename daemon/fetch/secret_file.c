#include "daemon/fetch/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define FILE_BYTES_MAX 65536u

static int secret_file_check(int fd, const char *path, struct stat *ret_stat, struct why *why) {
        if (fstat(fd, ret_stat) < 0)
                return why_errno(why, -errno, "credentials %s", path);
        if (!S_ISREG(ret_stat->st_mode))
                return why_set(why, -EINVAL, "credentials %s: not a regular file", path);
        if (ret_stat->st_uid != geteuid() && ret_stat->st_uid != 0)
                return why_set(why, -EACCES, "credentials %s: belongs to user %u; it must be yours or root's", path,
                               ret_stat->st_uid);
        if ((ret_stat->st_mode & 07) || (ret_stat->st_mode & 030) ||
            ((ret_stat->st_mode & 040) && ret_stat->st_uid != 0))
                return why_set(why, -EACCES, "credentials %s: others may read or write it (mode %04o): chmod 600 %s",
                               path, ret_stat->st_mode & 07777, path);
        if (ret_stat->st_size > (off_t)FILE_BYTES_MAX)
                return why_set(why, -EINVAL, "credentials %s: larger than 64 KiB", path);
        return 0;
}

/* The descriptor that was checked is the one that is read, so it does not matter if the name changes in between. */
int secret_file_read(const char *path, struct secret_file *ret_file, struct why *why) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct secret_file file;
        struct stat stat;
        int r;

        if (fd < 0)
                return why_errno(why, -errno, "credentials %s", path);
        r = secret_file_check(fd, path, &stat, why);
        if (r < 0)
                return r;
        file.n_bytes = (size_t)stat.st_size;
        file.text = malloc(file.n_bytes + 1);
        if (!file.text)
                return -ENOMEM;
        r = disk_read_at(fd, file.text, file.n_bytes, 0);
        file.text[file.n_bytes] = '\0';
        if (r < 0)
                why_errno(why, r, "credentials %s", path);
        else if (memchr(file.text, '\0', file.n_bytes))
                r = why_set(why, -EINVAL, "credentials %s: not a text file", path);
        if (r < 0) {
                secret_file_fini(&file);
                return r;
        }
        *ret_file = file;
        return 0;
}

void secret_file_fini(struct secret_file *file) {
        if (file->text)
                explicit_bzero(file->text, file->n_bytes);
        free(file->text);
        *file = (struct secret_file){ 0 };
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

static char *secret_line_trimmed(char *text) {
        char *end;

        text += strspn(text, " \t\r");
        end = text + strlen(text);
        while (end > text && strchr(" \t\r", end[-1]))
                *--end = '\0';
        return text;
}

static enum secret_line secret_line_cut(struct secret_lines *lines, char *line) {
        char *end;

        lines->key = line;
        lines->value = NULL;
        if (*line == '[') {
                end = strrchr(line, ']'); /* the last: a server's name may be [http://[::1]:8080] */
                if (!end || end[1])
                        return SECRET_OTHER;
                *end = '\0';
                lines->key = secret_line_trimmed(line + 1);
                return SECRET_SECTION;
        }
        end = strchr(line, '=');
        if (!end)
                return SECRET_OTHER;
        *end = '\0';
        lines->key = secret_line_trimmed(line);
        lines->value = secret_line_trimmed(end + 1);
        return SECRET_VALUE;
}

enum secret_line secret_lines_next(struct secret_lines *lines) {
        char *line;

        while ((line = strsep(&lines->rest, "\n"))) {
                lines->number++;
                lines->is_indented = *line == ' ' || *line == '\t';
                line = secret_line_trimmed(line);
                if (*line && *line != '#' && *line != ';')
                        return secret_line_cut(lines, line);
        }
        return SECRET_END;
}
