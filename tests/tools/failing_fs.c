/* A file system that passes a folder through and fails as it is told: reads that hang, errors, delays, short reads.
 *
 *   failing_fs FOLDER MOUNTPOINT SOCKET [SECONDS]
 *
 * Stays in the foreground until SIGTERM or SIGINT, then unmounts. Commands come as packets to the Unix socket
 * (SOCK_SEQPACKET) at SOCKET, one a connection; the answer is one packet: "ok", "ok NUMBER" or "error: REASON".
 *
 *   hang PATTERN [OPTIONS]          requests get no answer until the rule is cleared
 *   fail PATTERN ERRNO [OPTIONS]    an error: "EIO", "ESTALE", "5"
 *   delay PATTERN MS [OPTIONS]      the answer comes MS milliseconds later
 *   short PATTERN BYTES [OPTIONS]   a read brings BYTES bytes at most
 *   clear [PATTERN]                 drops all rules, or those with this pattern; what hung because of them goes on
 *   hanging                         how many requests wait for a clear
 *   count OPERATION                 how many requests of this kind have come
 *
 * PATTERN is matched against the path within FOLDER ("class0/1.jpg"; "." is the folder itself); "*" also matches "/".
 * OPTIONS: ops=read,open  only these operations (default: all); after=N  not the first N; times=N  not after N.
 * The first rule that applies decides.
 *
 * A request that hangs is like one to a hard mount of a dead server: no signal ends it. After SIGKILL to this program,
 * requests fail with ENOTCONN. The kernel remembers names and attributes for SECONDS (0: not at all, so each use of a
 * path asks here); data that lie in the page cache are read without asking, except in files that were opened while a
 * `short` rule was there.
 *
 * One thread. A request that has to wait is put aside as the kernel sent it, and handled again later. */
#define FUSE_USE_VERSION 314

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/clock.h"

#define COMMAND_MAX    8192 /* bytes */
#define NEVER          UINT64_MAX
#define NOWHERE        "/gone" /* the path of what was removed while the kernel knows it */
#define BACKGROUND_MAX 65535   /* requests of read-ahead: those that hang must not hold up the others */

/* clang-format off */
#define OPERATIONS(X)                                                                                                  \
        X(lookup) X(getattr) X(setattr) X(readlink) X(mkdir) X(unlink) X(rmdir) X(symlink) X(rename) X(link) X(mknod)  \
        X(open) X(read) X(write) X(flush) X(fsync) X(create) X(fallocate) X(opendir) X(readdir) X(statfs)
/* clang-format on */

enum operation {
#define X(name) OP_##name,
        OPERATIONS(X)
#undef X
        N_OPERATIONS
};

static const char *const OPERATION_NAMES[] = {
#define X(name) #name,
        OPERATIONS(X)
#undef X
};

enum action {
        HANG,
        FAIL,
        DELAY,
        SHORT
};

struct rule {
        TAILQ_ENTRY(rule) entry;
        uint64_t id;
        enum action action;
        char pattern[PATH_MAX];
        uint64_t value;      /* errno, milliseconds or bytes */
        uint64_t operations; /* bits */
        uint64_t n_after, n_times, n_met;
};

/* A request that waits. */
struct waiting {
        TAILQ_ENTRY(waiting) entry;
        struct fuse_buf buffer; /* as the kernel sent it */
        uint64_t rule;          /* its id */
        uint64_t due_ns;        /* NEVER: until the rule is gone */
};

/* What the kernel knows by a number: a path within the folder. */
struct node {
        char *path; /* NULL: free */
        uint64_t hash;
        uint64_t n_lookups;
        uint64_t generation;
};

static struct {
        int folder_fd;
        int listen_fd;
        struct fuse_session *session;
        TAILQ_HEAD(, rule) rules;
        TAILQ_HEAD(, waiting) waiting;
        double name_seconds;
        uint64_t last_rule;
        uint64_t n_seen[N_OPERATIONS];
        struct node *nodes; /* by inode number; 0 is none, 1 the root */
        uint64_t n_nodes;

        /* Of the request at hand. */
        bool is_resumed;              /* it has waited: delays are over */
        const struct rule *put_aside; /* not NULL: it must wait because of this rule */
} fs;

/* ---- nodes --------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text) {
        uint64_t hash = 0xcbf29ce484222325ull;

        while (*text)
                hash = (hash ^ (uint8_t)*text++) * 0x100000001b3ull;
        return hash;
}

static void *or_die(void *memory) {
        if (!memory) {
                fprintf(stderr, "failing_fs: out of memory\n");
                abort();
        }
        return memory;
}

static struct node *node_find(const char *path) {
        uint64_t hash = hash_of(path);

        for (uint64_t i = 1; i < fs.n_nodes; i++)
                if (fs.nodes[i].path && fs.nodes[i].hash == hash && strcmp(fs.nodes[i].path, path) == 0)
                        return &fs.nodes[i];
        return NULL;
}

static void node_set_path(struct node *node, const char *path) {
        free(node->path);
        node->path = or_die(strdup(path));
        node->hash = hash_of(path);
}

static struct node *node_get(const char *path) {
        struct node *node = node_find(path);
        uint64_t i = 1;

        if (!node) {
                while (i < fs.n_nodes && fs.nodes[i].path)
                        i++;
                if (i >= fs.n_nodes) {
                        uint64_t n = fs.n_nodes ? 2 * fs.n_nodes : 64;

                        fs.nodes = or_die(reallocarray(fs.nodes, n, sizeof(*fs.nodes)));
                        memset(fs.nodes + fs.n_nodes, 0, (n - fs.n_nodes) * sizeof(*fs.nodes));
                        i = fs.n_nodes ? fs.n_nodes : 1;
                        fs.n_nodes = n;
                }
                node = &fs.nodes[i];
                node_set_path(node, path);
                node->n_lookups = 0;
                node->generation++;
        }
        node->n_lookups++;
        return node;
}

static void node_forget(fuse_ino_t ino, uint64_t n) {
        struct node *node = &fs.nodes[ino];

        if (ino == FUSE_ROOT_ID || !node->path)
                return;
        node->n_lookups = node->n_lookups > n ? node->n_lookups - n : 0;
        if (node->n_lookups == 0) {
                free(node->path);
                node->path = NULL;
        }
}

/* What is at `from` is at `to` now, also all that lies below. What was at `to` is nowhere. */
static void nodes_rename(const char *from, const char *to) {
        struct node *replaced = node_find(to);
        size_t n = strlen(from);
        char path[PATH_MAX];

        if (replaced && strcmp(from, to) != 0)
                node_set_path(replaced, NOWHERE);
        for (uint64_t i = 2; i < fs.n_nodes; i++) {
                struct node *node = &fs.nodes[i];

                if (!node->path || strncmp(node->path, from, n) != 0 || (node->path[n] != '/' && node->path[n] != '\0'))
                        continue;
                snprintf(path, sizeof(path), "%s%s", to, node->path + n);
                node_set_path(node, path);
        }
}

static const char *path_of(fuse_ino_t ino) {
        return fs.nodes[ino].path;
}

/* The path of `name` in a folder; "." is left out. */
static const char *path_in(fuse_ino_t parent, const char *name, char ret_path[PATH_MAX]) {
        if (parent == FUSE_ROOT_ID)
                snprintf(ret_path, PATH_MAX, "%s", name);
        else
                snprintf(ret_path, PATH_MAX, "%s/%s", path_of(parent), name);
        return ret_path;
}

/* ---- rules --------------------------------------------------------------------------------------------------- */

static bool applies(struct rule *rule, enum operation operation, const char *path) {
        if (!(rule->operations >> operation & 1) || fnmatch(rule->pattern, path, 0) != 0)
                return false;
        if (rule->action == DELAY && fs.is_resumed)
                return false;
        if (rule->action == SHORT && operation != OP_read)
                return false;
        rule->n_met++;
        return rule->n_met > rule->n_after && (rule->n_times == 0 || rule->n_met <= rule->n_after + rule->n_times);
}

static struct rule *rule_for(enum operation operation, const char *path) {
        struct rule *rule;

        TAILQ_FOREACH(rule, &fs.rules, entry)
                if (applies(rule, operation, path))
                        return rule;
        return NULL;
}

static bool is_short(const char *path) {
        struct rule *rule;

        TAILQ_FOREACH(rule, &fs.rules, entry)
                if (rule->action == SHORT && fnmatch(rule->pattern, path, 0) == 0)
                        return true;
        return false;
}

/* Is the request dealt with, because it fails or waits? Shortens `*size` for a short read. */
static bool is_dealt_with(fuse_req_t req, enum operation operation, const char *path, size_t *size) {
        const struct rule *rule;

        if (!fs.is_resumed)
                fs.n_seen[operation]++;
        rule = rule_for(operation, path);
        if (!rule)
                return false;
        switch (rule->action) {
        case FAIL:
                fuse_reply_err(req, (int)rule->value);
                return true;
        case HANG:
        case DELAY:
                fs.put_aside = rule;
                fuse_reply_none(req); /* frees it and sends nothing */
                return true;
        case SHORT:
                if (size && *size > rule->value)
                        *size = rule->value;
                break;
        }
        return false;
}

static void put_aside(const struct fuse_buf *buffer, const struct rule *rule) {
        struct waiting *waiting = or_die(calloc(1, sizeof(*waiting)));

        waiting->buffer = *buffer;
        waiting->buffer.mem = memcpy(or_die(malloc(buffer->size)), buffer->mem, buffer->size);
        waiting->rule = rule->id;
        waiting->due_ns = rule->action == HANG ? NEVER : clock_now_ns() + rule->value * 1000000;
        TAILQ_INSERT_TAIL(&fs.waiting, waiting, entry);
}

static void handle(const struct fuse_buf *buffer, bool is_resumed) {
        fs.is_resumed = is_resumed;
        fs.put_aside = NULL;
        fuse_session_process_buf(fs.session, buffer);
        if (fs.put_aside)
                put_aside(buffer, fs.put_aside);
}

static bool rule_exists(uint64_t id) {
        const struct rule *rule;

        TAILQ_FOREACH(rule, &fs.rules, entry)
                if (rule->id == id)
                        return true;
        return false;
}

/* Goes on with those whose time has come, or whose rule is gone. Returns milliseconds to the next one; -1: none. */
static int resume_waiting(void) {
        struct waiting *waiting, *next;
        uint64_t now_ns = clock_now_ns(), first_ns = NEVER;

        TAILQ_FOREACH_SAFE(waiting, &fs.waiting, entry, next) {
                if (waiting->due_ns > now_ns && rule_exists(waiting->rule)) {
                        first_ns = waiting->due_ns < first_ns ? waiting->due_ns : first_ns;
                        continue;
                }
                TAILQ_REMOVE(&fs.waiting, waiting, entry);
                handle(&waiting->buffer, true);
                free(waiting->buffer.mem);
                free(waiting);
        }
        return first_ns == NEVER ? -1 : (int)((first_ns - now_ns) / 1000000) + 1;
}

/* ---- operations: names --------------------------------------------------------------------------------------- */

static void reply_error_or_ok(fuse_req_t req, int r) {
        fuse_reply_err(req, r < 0 ? errno : 0);
}

static int entry_of(const char *path, struct fuse_entry_param *ret_entry) {
        const struct node *node;

        memset(ret_entry, 0, sizeof(*ret_entry));
        ret_entry->attr_timeout = ret_entry->entry_timeout = fs.name_seconds;
        if (fstatat(fs.folder_fd, path, &ret_entry->attr, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        node = node_get(path);
        ret_entry->ino = (fuse_ino_t)(node - fs.nodes);
        ret_entry->generation = node->generation;
        return 0;
}

static void reply_entry(fuse_req_t req, const char *path) {
        struct fuse_entry_param entry;

        if (entry_of(path, &entry) < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_entry(req, &entry);
}

/* What was made belongs to who asked for it. */
static void give_away(fuse_req_t req, const char *path) {
        const struct fuse_ctx *context = fuse_req_ctx(req);

        if (fchownat(fs.folder_fd, path, context->uid, context->gid, AT_SYMLINK_NOFOLLOW) < 0)
                fprintf(stderr, "failing_fs: %s: %s\n", path, strerror(errno));
}

static void reply_made(fuse_req_t req, const char *path, int r) {
        if (r < 0) {
                fuse_reply_err(req, errno);
                return;
        }
        give_away(req, path);
        reply_entry(req, path);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_lookup, path_in(parent, name, path), NULL))
                reply_entry(req, path);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n) {
        node_forget(ino, n);
        fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets) {
        for (size_t i = 0; i < n; i++)
                node_forget(forgets[i].ino, forgets[i].nlookup);
        fuse_reply_none(req);
}

static int status_of(fuse_ino_t ino, const struct fuse_file_info *info, struct stat *ret_status) {
        return info ? fstat((int)info->fh, ret_status)
                    : fstatat(fs.folder_fd, path_of(ino), ret_status, AT_SYMLINK_NOFOLLOW);
}

static void reply_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *info) {
        struct stat status;

        if (status_of(ino, info, &status) < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_attr(req, &status, fs.name_seconds);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        if (!is_dealt_with(req, OP_getattr, path_of(ino), NULL))
                reply_attr(req, ino, info);
}

static int truncate_at(const char *path, off_t size) {
        int fd = openat(fs.folder_fd, path, O_WRONLY | O_CLOEXEC), r;

        if (fd < 0)
                return -1;
        r = ftruncate(fd, size);
        close(fd);
        return r;
}

static void set_times(const struct stat *attr, int what, struct timespec ret_times[2]) {
        ret_times[0].tv_nsec = ret_times[1].tv_nsec = UTIME_OMIT;
        if (what & FUSE_SET_ATTR_ATIME)
                ret_times[0] = attr->st_atim;
        if (what & FUSE_SET_ATTR_MTIME)
                ret_times[1] = attr->st_mtim;
        if (what & FUSE_SET_ATTR_ATIME_NOW)
                ret_times[0].tv_nsec = UTIME_NOW;
        if (what & FUSE_SET_ATTR_MTIME_NOW)
                ret_times[1].tv_nsec = UTIME_NOW;
}

static int change_attr(const char *path, const struct stat *attr, int what, const struct fuse_file_info *info) {
        struct timespec times[2];
        int r = 0;

        if (what & FUSE_SET_ATTR_MODE)
                r = fchmodat(fs.folder_fd, path, attr->st_mode & 07777, 0);
        if (r == 0 && what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
                r = fchownat(fs.folder_fd, path, what & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
                             what & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1, AT_SYMLINK_NOFOLLOW);
        if (r == 0 && what & FUSE_SET_ATTR_SIZE)
                r = info ? ftruncate((int)info->fh, attr->st_size) : truncate_at(path, attr->st_size);
        set_times(attr, what, times);
        if (r == 0 && (times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT))
                r = utimensat(fs.folder_fd, path, times, AT_SYMLINK_NOFOLLOW);
        return r;
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int what, struct fuse_file_info *info) {
        if (is_dealt_with(req, OP_setattr, path_of(ino), NULL))
                return;
        if (change_attr(path_of(ino), attr, what, info) < 0)
                fuse_reply_err(req, errno);
        else
                reply_attr(req, ino, info);
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino) {
        char target[PATH_MAX];
        ssize_t n;

        if (is_dealt_with(req, OP_readlink, path_of(ino), NULL))
                return;
        n = readlinkat(fs.folder_fd, path_of(ino), target, sizeof(target) - 1);
        if (n < 0) {
                fuse_reply_err(req, errno);
                return;
        }
        target[n] = '\0';
        fuse_reply_readlink(req, target);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_mkdir, path_in(parent, name, path), NULL))
                reply_made(req, path, mkdirat(fs.folder_fd, path, mode));
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_mknod, path_in(parent, name, path), NULL))
                reply_made(req, path, mknodat(fs.folder_fd, path, mode, device));
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_symlink, path_in(parent, name, path), NULL))
                reply_made(req, path, symlinkat(target, fs.folder_fd, path));
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name) {
        char path[PATH_MAX];

        if (is_dealt_with(req, OP_link, path_in(parent, name, path), NULL))
                return;
        if (linkat(fs.folder_fd, path_of(ino), fs.folder_fd, path, 0) < 0)
                fuse_reply_err(req, errno);
        else
                reply_entry(req, path);
}

/* What is made under this name later is another file. */
static void remove_at(fuse_req_t req, const char *path, int flags) {
        struct node *node = node_find(path);
        int r = unlinkat(fs.folder_fd, path, flags);

        if (r == 0 && node)
                node_set_path(node, NOWHERE);
        reply_error_or_ok(req, r);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_unlink, path_in(parent, name, path), NULL))
                remove_at(req, path, 0);
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) {
        char path[PATH_MAX];

        if (!is_dealt_with(req, OP_rmdir, path_in(parent, name, path), NULL))
                remove_at(req, path, AT_REMOVEDIR);
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                      unsigned flags) {
        char from[PATH_MAX], to[PATH_MAX];
        int r;

        path_in(new_parent, new_name, to);
        if (is_dealt_with(req, OP_rename, path_in(parent, name, from), NULL))
                return;
        r = renameat2(fs.folder_fd, from, fs.folder_fd, to, flags);
        if (r == 0 && flags & RENAME_EXCHANGE) {
                nodes_rename(from, "/exchanged"); /* a name that nothing has */
                nodes_rename(to, from);
                nodes_rename("/exchanged", to);
        } else if (r == 0) {
                nodes_rename(from, to);
        }
        reply_error_or_ok(req, r);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino) {
        struct statvfs status;

        if (is_dealt_with(req, OP_statfs, ".", NULL))
                return;
        if (fstatvfs(fs.folder_fd, &status) < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_statfs(req, &status);
}

/* ---- operations: files --------------------------------------------------------------------------------------- */

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        int fd;

        if (is_dealt_with(req, OP_open, path_of(ino), NULL))
                return;
        fd = openat(fs.folder_fd, path_of(ino), (info->flags & ~(O_DIRECT | O_NOFOLLOW)) | O_CLOEXEC);
        if (fd < 0) {
                fuse_reply_err(req, errno);
                return;
        }
        info->fh = (uint64_t)fd;
        info->direct_io = is_short(path_of(ino)); /* the page cache would take a short read for the file's end */
        if (fuse_reply_open(req, info) == -ENOENT)
                close(fd); /* who asked has been killed */
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *info) {
        struct fuse_entry_param entry;
        char path[PATH_MAX];
        int fd;

        if (is_dealt_with(req, OP_create, path_in(parent, name, path), NULL))
                return;
        fd = openat(fs.folder_fd, path, (info->flags & ~(O_DIRECT | O_NOFOLLOW)) | O_CREAT | O_CLOEXEC, mode);
        if (fd < 0) {
                fuse_reply_err(req, errno);
                return;
        }
        give_away(req, path);
        info->fh = (uint64_t)fd;
        if (entry_of(path, &entry) < 0) {
                fuse_reply_err(req, errno);
                close(fd);
        } else if (fuse_reply_create(req, &entry, info) == -ENOENT) {
                close(fd);
        }
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *info) {
        char *bytes;
        ssize_t n;

        if (is_dealt_with(req, OP_read, path_of(ino), &size))
                return;
        bytes = or_die(malloc(size + 1));
        n = pread((int)info->fh, bytes, size, offset);
        if (n < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_buf(req, bytes, (size_t)n);
        free(bytes);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *info) {
        ssize_t n;

        if (is_dealt_with(req, OP_write, path_of(ino), NULL))
                return;
        n = pwrite((int)info->fh, bytes, size, offset);
        if (n < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_write(req, (size_t)n);
}

static void do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        if (!is_dealt_with(req, OP_flush, path_of(ino), NULL))
                fuse_reply_err(req, 0);
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        close((int)info->fh);
        fuse_reply_err(req, 0);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int only_data, struct fuse_file_info *info) {
        if (!is_dealt_with(req, OP_fsync, path_of(ino), NULL))
                reply_error_or_ok(req, only_data ? fdatasync((int)info->fh) : fsync((int)info->fh));
}

static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *info) {
        if (!is_dealt_with(req, OP_fallocate, path_of(ino), NULL))
                reply_error_or_ok(req, fallocate((int)info->fh, mode, offset, length));
}

/* ---- operations: folders ------------------------------------------------------------------------------------- */

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        DIR *dir = NULL;
        int fd;

        if (is_dealt_with(req, OP_opendir, path_of(ino), NULL))
                return;
        fd = openat(fs.folder_fd, path_of(ino), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                dir = fdopendir(fd);
        if (!dir) {
                fuse_reply_err(req, errno);
                if (fd >= 0)
                        close(fd);
                return;
        }
        info->fh = (uint64_t)(uintptr_t)dir;
        if (fuse_reply_open(req, info) == -ENOENT)
                closedir(dir);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *info) {
        DIR *dir = (DIR *)(uintptr_t)info->fh;
        const struct dirent *found;
        size_t n = 0;
        char *bytes;

        if (is_dealt_with(req, OP_readdir, path_of(ino), NULL))
                return;
        bytes = or_die(malloc(size));
        seekdir(dir, offset);
        while ((found = readdir(dir))) {
                struct stat status = { .st_ino = found->d_ino, .st_mode = (mode_t)found->d_type << 12 };
                size_t n_this = fuse_add_direntry(req, bytes + n, size - n, found->d_name, &status, telldir(dir));

                if (n_this > size - n)
                        break;
                n += n_this;
        }
        fuse_reply_buf(req, bytes, n);
        free(bytes);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
        closedir((DIR *)(uintptr_t)info->fh);
        fuse_reply_err(req, 0);
}

static void do_fsyncdir(fuse_req_t req, fuse_ino_t ino, int only_data, struct fuse_file_info *info) {
        if (!is_dealt_with(req, OP_fsync, path_of(ino), NULL))
                reply_error_or_ok(req, fsync(dirfd((DIR *)(uintptr_t)info->fh)));
}

static void do_init(void *userdata, struct fuse_conn_info *connection) {
        connection->max_background = connection->congestion_threshold = BACKGROUND_MAX;
}

static const struct fuse_lowlevel_ops FS_OPERATIONS = {
        .init = do_init,
        .lookup = do_lookup,
        .forget = do_forget,
        .forget_multi = do_forget_multi,
        .getattr = do_getattr,
        .setattr = do_setattr,
        .readlink = do_readlink,
        .mkdir = do_mkdir,
        .mknod = do_mknod,
        .symlink = do_symlink,
        .link = do_link,
        .unlink = do_unlink,
        .rmdir = do_rmdir,
        .rename = do_rename,
        .statfs = do_statfs,
        .open = do_open,
        .create = do_create,
        .read = do_read,
        .write = do_write,
        .flush = do_flush,
        .release = do_release,
        .fsync = do_fsync,
        .fallocate = do_fallocate,
        .opendir = do_opendir,
        .readdir = do_readdir,
        .releasedir = do_releasedir,
        .fsyncdir = do_fsyncdir,
};

/* ---- commands ------------------------------------------------------------------------------------------------ */

static int errno_of(const char *name) {
        for (int number = 1; number < 200; number++)
                if (strerrorname_np(number) && strcmp(strerrorname_np(number), name) == 0)
                        return number;
        return atoi(name);
}

static int operation_of(const char *name) {
        for (int i = 0; i < N_OPERATIONS; i++)
                if (strcmp(OPERATION_NAMES[i], name) == 0)
                        return i;
        return -1;
}

/* "read,open" as bits; 0: there is no such operation. */
static uint64_t operations_of(char *names) {
        uint64_t operations = 0;
        char *rest = NULL;

        for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
                int operation = operation_of(name);

                if (operation < 0)
                        return 0;
                operations |= 1ull << operation;
        }
        return operations;
}

static const char *parse_option(struct rule *rule, char *word) {
        if (strncmp(word, "ops=", 4) == 0)
                rule->operations = operations_of(word + 4);
        else if (strncmp(word, "after=", 6) == 0)
                rule->n_after = strtoull(word + 6, NULL, 10);
        else if (strncmp(word, "times=", 6) == 0)
                rule->n_times = strtoull(word + 6, NULL, 10);
        else
                return "unknown option";
        return rule->operations ? NULL : "unknown operation";
}

static const char *parse_rule(enum action action, char **words, struct rule *rule) {
        const char *trouble = NULL;

        rule->action = action;
        rule->operations = ~0ull;
        if (!words[0])
                return "which paths?";
        if (strlen(words[0]) >= sizeof(rule->pattern))
                return "the pattern is too long";
        strcpy(rule->pattern, words[0]);
        words++;
        if (action != HANG) {
                if (!words[0])
                        return "a value is missing";
                rule->value = action == FAIL ? (uint64_t)errno_of(words[0]) : strtoull(words[0], NULL, 10);
                if (action == FAIL && rule->value == 0)
                        return "unknown error";
                words++;
        }
        while (*words && !trouble)
                trouble = parse_option(rule, *words++);
        return trouble;
}

static const char *add_rule(enum action action, char **words) {
        struct rule *rule = or_die(calloc(1, sizeof(*rule)));
        const char *trouble = parse_rule(action, words, rule);

        if (trouble) {
                free(rule);
                return trouble;
        }
        rule->id = ++fs.last_rule;
        TAILQ_INSERT_TAIL(&fs.rules, rule, entry);
        return NULL;
}

static void clear_rules(const char *pattern) {
        struct rule *rule, *next;

        TAILQ_FOREACH_SAFE(rule, &fs.rules, entry, next) {
                if (pattern && strcmp(rule->pattern, pattern) != 0)
                        continue;
                TAILQ_REMOVE(&fs.rules, rule, entry);
                free(rule);
        }
        resume_waiting();
}

static unsigned long long n_hanging(void) {
        const struct waiting *waiting;
        unsigned long long n = 0;

        TAILQ_FOREACH(waiting, &fs.waiting, entry)
                n += waiting->due_ns == NEVER;
        return n;
}

static const char *obey(char **words, char *ret_value, size_t size) {
        static const char *const ACTIONS[] = { [HANG] = "hang", [FAIL] = "fail", [DELAY] = "delay", [SHORT] = "short" };
        int operation;

        if (!words[0])
                return "no command";
        for (int action = HANG; action <= SHORT; action++)
                if (strcmp(words[0], ACTIONS[action]) == 0)
                        return add_rule((enum action)action, words + 1);
        if (strcmp(words[0], "clear") == 0) {
                clear_rules(words[1]);
                return NULL;
        }
        if (strcmp(words[0], "hanging") == 0) {
                snprintf(ret_value, size, " %llu", n_hanging());
                return NULL;
        }
        if (strcmp(words[0], "count") == 0) {
                operation = words[1] ? operation_of(words[1]) : -1;
                if (operation < 0)
                        return "unknown operation";
                snprintf(ret_value, size, " %llu", (unsigned long long)fs.n_seen[operation]);
                return NULL;
        }
        return "unknown command";
}

static void answer_command(void) {
        char command[COMMAND_MAX], answer[128], value[32] = "", *words[16] = { 0 }, *rest = NULL;
        int fd = accept4(fs.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        const char *trouble;
        ssize_t n;

        if (fd < 0)
                return;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 1 }, sizeof(struct timeval));
        n = recv(fd, command, sizeof(command) - 1, 0);
        if (n > 0) {
                command[n] = '\0';
                words[0] = strtok_r(command, " \n", &rest);
                for (int i = 1; i < 15 && words[i - 1]; i++)
                        words[i] = strtok_r(NULL, " \n", &rest);
                trouble = obey(words, value, sizeof(value));
                snprintf(answer, sizeof(answer), trouble ? "error: %s" : "ok%s", trouble ? trouble : value);
                if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
                        fprintf(stderr, "failing_fs: answer: %s\n", strerror(errno));
        }
        close(fd);
}

static int listen_at(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
                return -1;
        strcpy(address.sun_path, path);
        unlink(path);
        return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0 ? fd : -1;
}

/* ---- the program --------------------------------------------------------------------------------------------- */

static void run(void) {
        struct fuse_buf buffer = { 0 };
        struct pollfd fds[2] = { { .fd = fuse_session_fd(fs.session), .events = POLLIN },
                                 { .fd = fs.listen_fd, .events = POLLIN } };

        while (!fuse_session_exited(fs.session)) {
                int r = poll(fds, 2, resume_waiting());

                if (r < 0)
                        continue; /* a signal: perhaps the one that ends us */
                if (fds[0].revents) {
                        r = fuse_session_receive_buf(fs.session, &buffer);
                        if (r > 0)
                                handle(&buffer, false);
                        else if (r == 0 || r == -ENODEV)
                                break;
                }
                if (fds[1].revents)
                        answer_command();
        }
        free(buffer.mem);
}

static int mount_and_run(const char *program, const char *mount_point) {
        struct fuse_args args = { 0 };

        if (fuse_opt_add_arg(&args, program) != 0 ||
            fuse_opt_add_arg(&args, "-oallow_other,default_permissions,fsname=failing_fs") != 0)
                return 1;
        fs.session = fuse_session_new(&args, &FS_OPERATIONS, sizeof(FS_OPERATIONS), NULL);
        fuse_opt_free_args(&args);
        if (!fs.session || fuse_set_signal_handlers(fs.session) != 0 ||
            fuse_session_mount(fs.session, mount_point) != 0)
                return 1;
        run();
        fuse_session_unmount(fs.session);
        fuse_remove_signal_handlers(fs.session);
        fuse_session_destroy(fs.session); /* closes the connection: what hangs, fails */
        return 0;
}

int main(int argc, char **argv) {
        struct rlimit files;

        if (argc != 4 && argc != 5) {
                fprintf(stderr, "Usage: failing_fs FOLDER MOUNTPOINT SOCKET [SECONDS]\n");
                return 64;
        }
        TAILQ_INIT(&fs.rules);
        TAILQ_INIT(&fs.waiting);
        fs.name_seconds = argc == 5 ? atof(argv[4]) : 0;
        fs.folder_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
        fs.listen_fd = listen_at(argv[3]);
        if (fs.folder_fd < 0 || fs.listen_fd < 0) {
                fprintf(stderr, "failing_fs: %s: %s\n", fs.folder_fd < 0 ? argv[1] : argv[3], strerror(errno));
                return 1;
        }
        node_get("."); /* FUSE_ROOT_ID */
        umask(0);      /* the kernel has applied the caller's */
        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        return mount_and_run(argv[0], argv[2]);
}
