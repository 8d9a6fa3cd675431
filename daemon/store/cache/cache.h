/* store/cache/cache.h: datasets that lie elsewhere (a bucket, a hub, a web server), as folders of this node.
 *
 * An origin that is opened becomes a folder with all of its files, in their full length and at first without a byte:
 * they are sparse. Whoever wants to read a part asks for it first (cached_want(), cached_read()), and it is fetched
 * into the file's place, unless it is there. So formats and readers need not know where a dataset lies, and what was
 * streamed once is read as any local file is.
 *
 * Files are fetched in chunks of CACHE_CHUNK_BYTES; a smaller file is one chunk. A piece of a chunk that is needed
 * before its chunk can be here is fetched by itself. What is there is noted in a journal with a digest of each chunk
 * (store/cache/cache_journal.h), which a daemon that starts later reads.
 *
 * The cache holds at most `limit` bytes. What is there stays: for one job, no other choice has more hits. When it is
 * full, what comes passes through: it is removed once it was read and is not needed within anybody's horizon. Origins
 * that nobody has used for a while make room first. Nothing but what this cache has fetched is ever removed.
 *
 * Several daemons may use one folder: each has a part of it, and of the limit (store/cache/cache_folders.h). Any thread
 * may call everything here; done() is called on threads of the cache, should hand over and return, and may ask for
 * more.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"
#include "proto/fetching.h"
#include "proto/origin_answers.h"

#define CACHE_CHUNK_BYTES DLP_CHUNK_BYTES

/* A file of this name beside the data is an index of them that dlctl index has written. */
#define CACHE_INDEX_NAME ".dataloaderd.index"

struct cache;
struct cached;
struct peers;

struct cache_options {
        const char *dir;      /* the folder; made when the first origin is opened, with those above it */
        uint64_t limit;       /* bytes; 0: four fifths of what is free or the cache's already */
        uint64_t fetch_limit; /* bytes a second from each origin; 0: no limit */
        uint64_t ahead_s;     /* seconds that an origin may be silent and nobody is to wait */
        bool is_private;      /* the credentials and settings of the environment and the home are ours */
};

/* Touches nothing yet. -ENOMEM. */
int cache_new(const struct cache_options *options, struct cache **ret_cache);

/* Chunks that other nodes own are asked of them from now on; before any origin is opened. `peers` outlives the cache.
 */
int cache_join(struct cache *cache, struct peers *peers, struct why *why);

/* Ends all fetches: wants are done with -ECANCELED, and so are new ones. */
void cache_cancel(struct cache *cache);

/* All datasets of it must have been closed; waits for what looks whether an origin answers. NULL is fine. */
void cache_free(struct cache *cache);

/* ---- an origin ------------------------------------------------------------------------------------------------ */

/* How to speak to it: as in struct http_options. NULL: as there. */
struct cached_terms {
        const char *url;
        const char *kind; /* as in struct origin_options */
        const char *endpoint, *region, *addressing, *credentials, *ca_file;
        const char *mirror;     /* a URL below which the same files lie, asked first: a cache of the site. NULL: none */
        uint32_t n_connections; /* 0: 256 */
        const atomic_bool *cancel;                          /* may be NULL */
        void (*progress)(void *userdata, uint64_t n_files); /* of the listing; may be NULL */
        void *userdata;
};

/* Lists the origin, or takes the one that is open with these terms, and makes its folder. If it does not answer, the
 * listing of an earlier time serves. Blocks as long as listing takes, which is a request a thousand files. Returns 0;
 * an errno with `why`: of the origin (fetch/origin/origin.h), or of the cache's folder. */
int cached_open(struct cache *cache, const struct cached_terms *terms, struct cached **ret_cached, struct why *why);

void cached_unref(struct cached *cached); /* NULL is fine */

/* Where the files are: a folder, or the one file of an origin that is one. */
const char *cached_path(const struct cached *cached);

/* Of the paths, sizes and ETags of all files but CACHE_INDEX_NAME: while it stays the same, so
 * do all bytes of the data. 64 hexadecimal digits. */
const char *cached_digest(const struct cached *cached);

/* What was noticed when it was opened and should be logged; "": nothing. */
const char *cached_notice(const struct cached *cached);

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

/* A part of a file that somebody is to read. The caller's, and not touched from cached_want() until done(). */
struct cache_want {
        uint64_t offset, n_bytes; /* a part beyond the file's end is left to whoever reads it */
        bool keeps_pieces; /* after the release, too: whoever makes an index reads the same places again and again */
        void (*done)(struct cache_want *want);
        void *userdata;

        int result;     /* set when done() is called: 0, or an errno as of a fetch */
        struct why why; /* after an error: names file and origin */

        /* The cache's. */
        uint64_t idx_file;
        uint64_t pieces[2]; /* ids of the flights that are pieces; 0: none */
        uint32_t n_missing;
        STAILQ_ENTRY(cache_want) entry;
};

/* Asks for it, at once. `path`: of the file, below `folder`, which is a path that begins with cached_path(). Returns 1
 * if it is all there, and done() is not called; 0: done() follows, and result 0 says that it is there. In both cases it
 * stays there until cached_release(). -ENOENT with `why`: there is no such file. */
int cached_want(struct cached *cached, struct cache_want *want, const char *folder, const char *path);

/* It was read; a want that has failed needs no release. */
void cached_release(struct cached *cached, struct cache_want *want);

/* It will be wanted in about `due_ns` from now. Never blocks. The part should be that of the want: a piece that is
 * fetched ahead helps whoever needs all or some of it, and nobody who needs more. */
void cached_ahead(struct cached *cached, const char *folder, const char *path, uint64_t offset, uint64_t n_bytes,
                  uint64_t due_ns);

/* Nobody waits for it any more; done() is not called from now on, unless it was begun: returns false then. */
bool cached_forget(struct cached *cached, struct cache_want *want);

/* How far ahead of who needs it what is to come should be asked for (dlp_horizon_ns()), by how late the origin's
 * answers have been. Quick; not more often than some times a turn of a loop. */
uint64_t cached_horizon_ns(struct cached *cached);

/* Would more of it be begun soon? False: so much is queued that it would only wait. */
bool cached_has_use_ahead(const struct cached *cached);

/* Begins to fetch what is not here of the chunks from number `first` on, after what is looked ahead for, as much as may
 * wait its turn: called some times a second, it keeps the origin busy. Returns the chunk to go on with, *ret_n_chunks
 * at the end; *ret_is_full: there is no room for that one. Never blocks. */
uint64_t cached_fill(struct cached *cached, uint64_t first, uint64_t *ret_n_chunks, bool *ret_is_full);

/* As disk_read_at() of an open file, for whoever makes an index: fetches what is not there, and waits. A file that is
 * none of the origin's is just read. Of whoever goes on, what follows is fetched ahead: in the file, and, unless
 * `is_alone`, in those that follow it. -ECANCELED once *cancel is true (may be NULL); an errno of the fetch with `why`.
 */
int cached_read(struct cached *cached, int fd, void *into, size_t n_bytes, uint64_t offset, bool is_alone,
                const atomic_bool *cancel, struct why *why);

/* A number of the content of an open file, without reading it: of its ETag or SHA-256, and size. False: it is none of
 * the origin's files. */
bool cached_mark(struct cached *cached, int fd, uint64_t *ret_mark);

/* Does the origin answer? Asks for the lengths of a few of its files. Blocks, until *cancel (NULL: cache_cancel()) at
 * the latest. Returns 0 or an errno with `why`. */
int cached_look(struct cached *cached, const atomic_bool *cancel, struct why *why);

/* ---- numbers -------------------------------------------------------------------------------------------------- */

struct cache_counts {
        uint64_t n_bytes, limit;                  /* held now, and at most */
        uint64_t n_hits, n_misses;                /* wants that were there, or were not */
        uint64_t n_fetched;                       /* bytes that origins sent */
        uint64_t n_requests, n_retries, n_paused; /* as in struct fetcher_counts, of the origins that are open */
        uint64_t first_byte_ns;                   /* the median, of the origin that is the slowest */
        uint64_t horizon_ns;                      /* the longest, of the origins that are open; 0: there is none */
        uint64_t n_evicted;                       /* bytes */
        const char *dir;                          /* where: cache_dir, or the folder in it that is ours */
        uint32_t n_others;                        /* daemons that use the same cache_dir */
        uint64_t n_peer_fetched, n_peer_sent;     /* bytes from and to other nodes */
        uint64_t n_peer_failures;                 /* chunks that another node did not give when it was asked */
};

/* False: nothing was opened in it yet. */
bool cache_counts(struct cache *cache, struct cache_counts *ret_counts);

/* How an origin has answered lately, what is asked of it, and how much of it is here. Some tens of microseconds. */
void cached_report(struct cached *cached, struct dlp_origin *ret_origin);
