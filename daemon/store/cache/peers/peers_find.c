/* Finds the nodes, again and again: in the configuration's list, of which one entry is this node, or in the folder that
 * all have. A thread of its own, because names are looked up and the folder may be far away; it is left behind if it
 * hangs there.
 *
 * Times in the folder are those of its server: a file is too old if it is much older than the one that this node has
 * just written. Each is opened, which has a network file system ask for it anew. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/peers/peers_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define FIRST_NS 500000000ull   /* until the second look; then twice as long each time, */
#define LOOK_NS  10000000000ull /* and at most so long */
#define GONE_S   60
#define STOP_NS  2000000000ull

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool is_same_address(const struct sockaddr *one, const struct sockaddr *other) {
        if (!one || one->sa_family != other->sa_family)
                return false;
        if (one->sa_family == AF_INET)
                return memcmp(&((const struct sockaddr_in *)one)->sin_addr,
                              &((const struct sockaddr_in *)other)->sin_addr, sizeof(struct in_addr)) == 0;
        return one->sa_family == AF_INET6 &&
               memcmp(&((const struct sockaddr_in6 *)one)->sin6_addr, &((const struct sockaddr_in6 *)other)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
}

static bool is_loopback(const struct sockaddr *address) {
        if (address->sa_family == AF_INET)
                return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Of an interface that is up, an address that others can use; IPv4 if there is one. */
static bool is_better(const struct ifaddrs *row, const struct ifaddrs *best) {
        int family = row->ifa_addr ? row->ifa_addr->sa_family : AF_UNSPEC;

        if (!(row->ifa_flags & IFF_UP) || (family != AF_INET && family != AF_INET6) || is_loopback(row->ifa_addr) ||
            (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)row->ifa_addr)->sin6_addr)))
                return false;
        return !best || (family == AF_INET && best->ifa_addr->sa_family == AF_INET6);
}

static bool is_of_here(const struct ifaddrs *interfaces, const struct sockaddr *address) {
        const struct ifaddrs *row;

        for (row = interfaces; row && !is_same_address(row->ifa_addr, address); row = row->ifa_next)
                ;
        return row;
}

/* Has this machine an address that the host's name leads to? `is_for_others`: none that leads nowhere from elsewhere.
 */
static bool leads_here(const struct ifaddrs *interfaces, const char *host, bool is_for_others) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *found = NULL, *row;
        bool leads = false;

        if (getaddrinfo(host, NULL, &hints, &found) != 0)
                return false;
        for (row = found; row && !leads; row = row->ai_next)
                leads = is_of_here(interfaces, row->ai_addr) && !(is_for_others && is_loopback(row->ai_addr));
        freeaddrinfo(found);
        return leads;
}

static void write_address(char into[PEERS_ADDRESS_SIZE], const char *host, uint16_t port) {
        snprintf(into, PEERS_ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* Where others reach this node: as it was configured; by its name, if that leads here; or an address of it. */
static void find_own_address(struct peers *peers, char ret_address[PEERS_ADDRESS_SIZE]) {
        char host[HOSTS_HOST_SIZE] = "";
        struct ifaddrs *interfaces = NULL;
        const struct ifaddrs *best = NULL;

        if (peers->host[0]) {
                write_address(ret_address, peers->host, peers->port);
                return;
        }
        if (getifaddrs(&interfaces) < 0)
                interfaces = NULL;
        if (gethostname(host, sizeof(host) - 1) < 0 || !leads_here(interfaces, host, true)) {
                for (const struct ifaddrs *row = interfaces; row; row = row->ifa_next)
                        if (is_better(row, best))
                                best = row;
                if (!best || getnameinfo(best->ifa_addr,
                                         best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                              : sizeof(struct sockaddr_in6),
                                         host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
                        snprintf(host, sizeof(host), "127.0.0.1");
        }
        freeifaddrs(interfaces);
        write_address(ret_address, host, peers->port);
}

static struct peer *peers_add(struct peers_found *found, const char *name, const char *address) {
        struct peer *peer = found->n_rows < PEERS_MAX ? &found->rows[found->n_rows] : NULL;

        if (!peer)
                return NULL;
        found->n_rows++;
        *peer = (struct peer){ .hash = XXH3_64bits(name, strlen(name)) };
        snprintf(peer->name, sizeof(peer->name), "%s", name);
        snprintf(peer->address, sizeof(peer->address), "%s", address);
        return peer;
}

/* ---- a list ------------------------------------------------------------------------------------------------------ */

static void find_in_list(struct peers *peers, struct peers_found *found) {
        char host[HOSTS_HOST_SIZE], address[PEERS_ADDRESS_SIZE];
        struct ifaddrs *interfaces = NULL;
        const char *text = peers->nodes;
        uint16_t port;

        if (getifaddrs(&interfaces) < 0)
                interfaces = NULL;
        while (hosts_next_place(&text, host, &port, NULL) > 0) {
                port = port ? port : PEERS_PORT;
                write_address(address, host, port);
                if (!peers_add(found, address, address))
                        break;
                if (port == peers->port && leads_here(interfaces, host, false))
                        found->idx_self = found->n_rows - 1;
        }
        freeifaddrs(interfaces);
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

/* Written anew each time: what a network file system knows of the folder is then asked for anew, too. Its time is the
 * server's. */
static int write_own(struct peers *peers, int folder_fd, const char *address, time_t *ret_now, struct why *why) {
        char begun[PEERS_NAME_SIZE + 8], text[PEERS_ADDRESS_SIZE + 1];
        _cleanup_(closep) int fd = -1;
        struct stat status;
        int r;

        snprintf(begun, sizeof(begun), ".%s.new", peers->name);
        snprintf(text, sizeof(text), "%s\n", address);
        fd = openat(folder_fd, begun, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : disk_write_at(fd, text, strlen(text), 0);
        if (r == 0 && (fstat(fd, &status) < 0 || renameat(folder_fd, begun, folder_fd, peers->name) < 0))
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "%s/%s", peers->folder, peers->name);
        *ret_now = status.st_mtime;
        return 0;
}

/* A file of ours or of root's, with a node's address. Whoever may write others there could learn the key. */
static bool read_address(int folder_fd, const char *name, time_t now, char ret_address[PEERS_ADDRESS_SIZE]) {
        _cleanup_(closep) int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        char host[HOSTS_HOST_SIZE], text[PEERS_ADDRESS_SIZE + 2] = "";
        const char *at = text;
        struct stat status;
        uint16_t port;

        if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_mtime < now - GONE_S ||
            (status.st_uid != geteuid() && status.st_uid != 0) || status.st_size >= (off_t)sizeof(text) ||
            disk_read_at(fd, text, (size_t)status.st_size, 0) < 0)
                return false;
        if (hosts_next_place(&at, host, &port, NULL) < 1 || !host[0] || port == 0)
                return false;
        write_address(ret_address, host, port);
        return true;
}

static int find_in_folder(struct peers *peers, const char *own, struct peers_found *found, struct why *why) {
        int folder_fd = open(peers->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char address[PEERS_ADDRESS_SIZE];
        struct dirent *entry;
        time_t now = 0;
        DIR *dir;
        int r;

        if (folder_fd < 0)
                return why_errno(why, -errno, "%s", peers->folder);
        r = write_own(peers, folder_fd, own, &now, why);
        dir = r == 0 ? fdopendir(folder_fd) : NULL;
        if (!dir) {
                r = r < 0 ? r : why_errno(why, -errno, "%s", peers->folder);
                close(folder_fd);
                return r;
        }
        while ((entry = readdir(dir))) {
                bool is_self = strcmp(entry->d_name, peers->name) == 0;

                if (entry->d_name[0] == '.' || strlen(entry->d_name) >= PEERS_NAME_SIZE ||
                    !read_address(dirfd(dir), entry->d_name, now, address) || !peers_add(found, entry->d_name, address))
                        continue;
                if (is_self)
                        found->idx_self = found->n_rows - 1;
        }
        closedir(dir);
        return 0;
}

static void remove_own(const struct peers *peers) {
        char path[PEERS_NAME_SIZE + 4096];

        snprintf(path, sizeof(path), "%s/%s", peers->folder, peers->name);
        unlink(path);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* What goes wrong is said when it begins; whoever was found last is still asked. */
static bool peers_find(struct peers *peers, const char *own, struct peers_found *found, bool was_good) {
        struct why why = { "" };
        bool is_good = true;

        *found = (struct peers_found){ .idx_self = -1 };
        if (peers->folder)
                is_good = find_in_folder(peers, own, found, &why) == 0;
        else
                find_in_list(peers, found);
        if (is_good)
                peers_take(peers, found);
        if (!peers->folder && found->idx_self < 0) {
                why_set(&why, 0, "none of them is this node, which listens at port %u: nothing is its own",
                        peers->port);
                is_good = false;
        }
        if (!is_good && was_good)
                log_warning("peers", "%s; looking again", why.text);
        return is_good;
}

static void *peers_main(void *userdata) {
        struct peers_found *found = calloc(1, sizeof(*found));
        uint64_t pause_ns = FIRST_NS;
        char own[PEERS_ADDRESS_SIZE] = "";
        struct peers *peers = userdata;
        bool is_good = true;

        if (peers->folder)
                find_own_address(peers, own);
        pthread_mutex_lock(&peers->lock);
        while (!peers->is_ending && found) {
                uint64_t until_ns;

                pthread_mutex_unlock(&peers->lock);
                is_good = peers_find(peers, own, found, is_good);
                until_ns = clock_now_ns() + pause_ns;
                pause_ns = 2 * pause_ns < LOOK_NS ? 2 * pause_ns : LOOK_NS;
                pthread_mutex_lock(&peers->lock);
                while (!peers->is_ending && clock_now_ns() < until_ns)
                        thread_wait_until(&peers->changed, &peers->lock, until_ns);
        }
        pthread_mutex_unlock(&peers->lock);
        free(found);
        if (peers->folder)
                remove_own(peers);
        pthread_mutex_lock(&peers->lock);
        peers->has_ended = true;
        pthread_cond_broadcast(&peers->changed);
        pthread_mutex_unlock(&peers->lock);
        return NULL;
}

int peers_find_start(struct peers *peers, struct why *why) {
        int r = thread_start(&peers->thread, "peers", peers_main, peers);

        peers->has_thread = r == 0;
        return r < 0 ? why_errno(why, r, "peers: cannot start a thread") : 0;
}

void peers_find_stop(struct peers *peers) {
        uint64_t until_ns = clock_now_ns() + STOP_NS;
        bool has_ended;

        if (!peers->has_thread)
                return;
        pthread_mutex_lock(&peers->lock);
        peers->is_ending = true;
        pthread_cond_broadcast(&peers->changed);
        while (!peers->has_ended && clock_now_ns() < until_ns)
                thread_wait_until(&peers->changed, &peers->lock, until_ns);
        has_ended = peers->has_ended;
        pthread_mutex_unlock(&peers->lock);
        if (has_ended)
                thread_join(peers->thread);
        else
                thread_detach(peers->thread);
        peers->has_thread = !has_ended;
}
