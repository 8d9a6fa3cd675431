#include "daemon/ctl/users/user_names.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

#define KNOWN_MAX      256u                   /* users; more users replace the oldest */
#define ASK_AGAIN_NS   (300ull * 1000000000u) /* names change, and a failed directory service recovers */
#define PASSWORD_BYTES 16384u                 /* of one entry */

enum state {
        UNASKED,
        WANTED, /* the thread will look it up, or is doing so */
        KNOWN,
};

struct known {
        uid_t uid;
        enum state state;
        char name[USER_NAME_SIZE]; /* "": no name was found */
        uint64_t looked_ns;
};

struct user_names {
        pthread_mutex_t lock; /* guards all below; a leaf, never held during a lookup */
        pthread_cond_t wanted;
        pthread_t thread;
        bool has_thread, is_looking, is_ending;
        struct known known[KNOWN_MAX];
        uint32_t n_known, idx_next; /* entries in use; the entry that is replaced next once all are used */
};

int user_names_new(struct user_names **ret_names) {
        struct user_names *names = calloc(1, sizeof(*names));

        if (!names)
                return -ENOMEM;
        pthread_mutex_init(&names->lock, NULL);
        pthread_cond_init(&names->wanted, NULL);
        *ret_names = names;
        return 0;
}

static void names_destroy(struct user_names *names) {
        pthread_mutex_destroy(&names->lock);
        pthread_cond_destroy(&names->wanted);
        free(names);
}

static struct known *user_names_find_wanted(struct user_names *names) {
        for (uint32_t i = 0; i < names->n_known; i++)
                if (names->known[i].state == WANTED)
                        return &names->known[i];
        return NULL;
}

static struct known *find_known(struct user_names *names, uid_t uid) {
        for (uint32_t i = 0; i < names->n_known; i++)
                if (names->known[i].uid == uid)
                        return &names->known[i];
        return NULL;
}

/* Asks the system; may never return. */
static void user_names_look_up(uid_t uid, char name[USER_NAME_SIZE]) {
        char *buffer = malloc(PASSWORD_BYTES);
        struct passwd entry, *found = NULL;

        name[0] = '\0';
        if (buffer && getpwuid_r(uid, &entry, buffer, PASSWORD_BYTES, &found) == 0 && found)
                snprintf(name, USER_NAME_SIZE, "%s", found->pw_name);
        text_make_printable(name); /* it is written to the log */
        free(buffer);
}

static void user_names_take_name(struct user_names *names, uid_t uid, const char *name) {
        struct known *known = find_known(names, uid);

        if (!known) /* its entry was replaced meanwhile */
                return;
        memcpy(known->name, name, USER_NAME_SIZE);
        known->state = KNOWN;
        known->looked_ns = clock_now_ns();
}

static void *names_main(void *userdata) {
        struct user_names *names = userdata;
        char name[USER_NAME_SIZE];
        struct known *known;
        bool is_left = false; /* user_names_free() was called during a lookup and did not wait */
        uid_t uid;

        pthread_mutex_lock(&names->lock);
        while (!names->is_ending) {
                known = user_names_find_wanted(names);
                if (!known) {
                        pthread_cond_wait(&names->wanted, &names->lock);
                        continue;
                }
                uid = known->uid;
                names->is_looking = true;
                pthread_mutex_unlock(&names->lock);
                user_names_look_up(uid, name);
                pthread_mutex_lock(&names->lock);
                names->is_looking = false;
                is_left = names->is_ending;
                user_names_take_name(names, uid, name);
        }
        pthread_mutex_unlock(&names->lock);
        if (is_left)
                names_destroy(names);
        return NULL;
}

void user_names_free(struct user_names *names) {
        bool is_looking;

        if (!names)
                return;
        pthread_mutex_lock(&names->lock);
        names->is_ending = true;
        is_looking = names->is_looking;
        if (is_looking)
                pthread_detach(names->thread);
        pthread_cond_signal(&names->wanted);
        pthread_mutex_unlock(&names->lock);
        if (is_looking)
                return;
        if (names->has_thread)
                thread_join(names->thread);
        names_destroy(names);
}

/* Requests a lookup of the name. If the thread cannot be started, the number is used instead, and the next call tries
 * again. */
static void want(struct user_names *names, struct known *known) {
        if (!names->has_thread)
                names->has_thread = thread_start(&names->thread, "user-names", names_main, names) == 0;
        if (!names->has_thread)
                return;
        known->state = WANTED;
        pthread_cond_signal(&names->wanted);
}

static struct known *take_place(struct user_names *names, uid_t uid) {
        uint32_t idx = names->n_known < KNOWN_MAX ? names->n_known++ : names->idx_next++ % KNOWN_MAX;

        names->known[idx] = (struct known){ .uid = uid };
        return &names->known[idx];
}

const char *user_name(struct user_names *names, uid_t uid, char buffer[USER_NAME_SIZE]) {
        struct known *known;

        pthread_mutex_lock(&names->lock);
        known = find_known(names, uid);
        if (!known)
                known = take_place(names, uid);
        if (known->state == UNASKED || (known->state == KNOWN && clock_now_ns() - known->looked_ns > ASK_AGAIN_NS))
                want(names, known);
        if (known->name[0])
                memcpy(buffer, known->name, USER_NAME_SIZE);
        else
                snprintf(buffer, USER_NAME_SIZE, "%u", uid);
        pthread_mutex_unlock(&names->lock);
        return buffer;
}
