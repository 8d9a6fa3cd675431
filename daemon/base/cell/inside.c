#include "daemon/base/cell/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/cell/confine.h"
#include "proto/base/cleanup.h"

struct memory {
        uint64_t number; /* 0: none */
        uint8_t *bytes;
        uint64_t n_bytes;
        bool is_writable;
};

static struct memory memories[CELL_MEMORIES_MAX];
static const struct cell_kind *the_kind;

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* Returns its length; 0: the daemon has closed the channel. */
static size_t inside_receive(void *packet, int *ret_fd) {
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = { packet, CELL_MESSAGE_MAX };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        ssize_t n;

        *ret_fd = -1;
        do
                n = recvmsg(CELL_CHANNEL, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < (ssize_t)sizeof(struct cell_head))
                return 0;
        if (CMSG_FIRSTHDR(&message) && control.head.cmsg_type == SCM_RIGHTS)
                memcpy(ret_fd, CMSG_DATA(&control.head), sizeof(*ret_fd));
        return (size_t)n;
}

/* The daemon waits for it, or has given up: then there is nothing left to do. */
static void inside_tell(const void *packet, size_t n_bytes) {
        ssize_t n;

        do
                n = send(CELL_CHANNEL, packet, n_bytes, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                _exit(0);
}

/* ---- memories ---------------------------------------------------------------------------------------------------- */

static struct memory *inside_find(uint64_t number) {
        for (uint32_t i = 0; i < CELL_MEMORIES_MAX; i++)
                if (memories[i].number == number)
                        return &memories[i];
        return NULL;
}

static void inside_forget(struct memory *memory) {
        if (!memory || memory->number == 0)
                return;
        if (the_kind->forget)
                the_kind->forget(memory->number);
        munmap(memory->bytes, memory->n_bytes);
        *memory = (struct memory){ 0 };
}

/* If it cannot be mapped, the cell ends: the daemon gives the order to another one, and no sample is to blame. */
static void inside_map(const struct cell_memory_word *word, int fd) {
        static const char TEXT[] = "it could not map memory of the daemon\n";
        struct memory *memory = inside_find(0);
        int protection = word->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
        void *bytes = fd < 0 || !memory ? MAP_FAILED : mmap(NULL, word->n_bytes, protection, MAP_SHARED, fd, 0);

        if (bytes == MAP_FAILED) {
                (void)!write(STDERR_FILENO, TEXT, sizeof(TEXT) - 1);
                _exit(EX_OSERR);
        }
        *memory = (struct memory){ word->head.number, bytes, word->n_bytes, word->is_writable };
}

static const struct memory *memory_at(const struct cell_place *place) {
        const struct memory *memory = place->memory ? inside_find(place->memory) : NULL;

        if (!memory || place->offset > memory->n_bytes || place->n_bytes > memory->n_bytes - place->offset)
                return NULL;
        return memory;
}

const uint8_t *cell_inside_bytes(const struct cell_place *place) {
        const struct memory *memory = memory_at(place);

        return memory ? memory->bytes + place->offset : NULL;
}

uint8_t *cell_inside_room(const struct cell_place *place) {
        const struct memory *memory = memory_at(place);

        return memory && memory->is_writable ? memory->bytes + place->offset : NULL;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void inside_answer(const void *order, size_t n_order) {
        static _Alignas(64) uint8_t packet[CELL_MESSAGE_MAX];
        struct cell_head head = { .word = CELL_ANSWER, .number = ((const struct cell_head *)order)->number };
        int result = 0;
        size_t n = the_kind->order(order, n_order, packet + sizeof(head), &result);

        head.result = result;
        memcpy(packet, &head, sizeof(head));
        inside_tell(packet, sizeof(head) + n);
}

static void inside_serve(void) {
        static _Alignas(64) uint8_t packet[CELL_MESSAGE_MAX];
        const struct cell_head *head = (const struct cell_head *)(const void *)packet;
        size_t n;
        int fd;

        while ((n = inside_receive(packet, &fd)) > 0) {
                if (head->word == CELL_MEMORY && n == sizeof(struct cell_memory_word))
                        inside_map((const struct cell_memory_word *)(const void *)packet, fd);
                else if (head->word == CELL_FORGET)
                        inside_forget(inside_find(head->number));
                else if (head->word == CELL_ORDER)
                        inside_answer(packet, n);
                closep(&fd);
        }
}

/* Its tools, then its confinement. */
static int inside_settle(struct why *why) {
        static _Alignas(64) uint8_t packet[CELL_MESSAGE_MAX];
        const struct cell_setup *setup = (const struct cell_setup *)(const void *)packet;
        uint64_t data_bytes = 0;
        int fd, r;
        size_t n = inside_receive(packet, &fd);

        if (n < sizeof(*setup) || setup->head.word != CELL_SETUP)
                _exit(0); /* started by hand, or the daemon has ended */
        confine_begin(setup->trust);
        r = the_kind->prepare(packet + sizeof(*setup), n - sizeof(*setup), &data_bytes, why);
        return r < 0 || setup->trust == CELL_INSTALLED ? r : confine(data_bytes, why);
}

static void live(void) {
        struct cell_hello hello = { .head = { .word = CELL_HELLO } };

        hello.head.result = inside_settle(&hello.why);
        inside_tell(&hello, sizeof(hello));
        if (hello.head.result == 0)
                inside_serve();
}

void cell_inside(int argc, char **argv, const struct cell_kind *kinds) {
        if (argc != 3 || strcmp(argv[1], CELL_ARGUMENT) != 0)
                return;
        for (the_kind = kinds; the_kind->name; the_kind++)
                if (strcmp(the_kind->name, argv[2]) == 0) {
                        prctl(PR_SET_NAME, "dataloader-cell");
                        live();
                }
        _exit(0);
}
