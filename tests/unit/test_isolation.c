/* Decoders in processes of their own: what they may not do, and what the daemon makes of one that somebody has taken
 * over.
 *
 * This program is also the process: started with --cell it does not become a suite of tests. Most samples are decoded
 * as the daemon's own process does; the first ones make it misbehave, each in its own way. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/codec/cell/render_inside.h"
#include "daemon/codec/cell/render_messages.h"
#include "daemon/data/ledger/ledger.h"
#include "tests/support/serving.h"
#include "tests/support/suite.h"

#define SOON_MS       60000
#define N_SAMPLES     48u
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct serving serving;

/* ---- in the process ---------------------------------------------------------------------------------------------- */

static void leave(void) {
        _exit(3);
}

static void fault(void) {
        raise(SIGSEGV);
}

static void talk_to_the_network(void) {
        socket(AF_INET, SOCK_STREAM, 0);
}

static void start_a_process(void) {
        fork();
}

static void become_a_program(void) {
        execl("/bin/true", "true", NULL);
}

static void make_code(void) {
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void end_the_daemon(void) {
        kill(getppid(), SIGKILL);
}

static void pass_descriptors(void) {
        struct msghdr message = { 0 };

        sendmsg(CELL_CHANNEL, &message, 0);
}

static void open_files(void) {
        int fd = open("/etc/passwd", O_RDONLY);

        _exit(fd < 0 && errno == EPERM ? 4 : 5);
}

static void take_all_memory(void) {
        volatile char *bytes = mmap(NULL, 64ull << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        _exit(bytes == MAP_FAILED ? 6 : 7);
}

static void spin(void) {
        for (volatile unsigned i = 0;;
             i++) /* a signed one overflows within seconds, and a sanitizer ends the process */
                continue;
}

static void write_much(void) {
        char text[4096];

        memset(text, 'x', sizeof(text));
        memcpy(text, "something is \x1b[31mwrong\n", 23);
        for (int i = 0; i < 1000; i++)
                if (write(2, text, sizeof(text)) < 0)
                        break;
        _exit(8);
}

static void hang_up(void) {
        close(CELL_CHANNEL);
        spin();
}

static void say_something_else(void) {
        send(CELL_CHANNEL, "no", 2, 0);
        spin();
}

static void answer_another_order(void) {
        struct cell_head head = { .word = CELL_ANSWER, .number = 7777 };

        send(CELL_CHANNEL, &head, sizeof(head), 0);
        spin();
}

static void add_fields(struct render_answer *answer, int *result) {
        (void)result;
        answer->n_opened = 31;
}

static void add_stages(struct render_answer *answer, int *result) {
        (void)result;
        answer->n_stages = UINT32_MAX;
}

static void give_another_shape(struct render_answer *answer, int *result) {
        (void)result;
        answer->opened[0].opened.shape[0] = INT64_MAX;
}

static void give_another_size(struct render_answer *answer, int *result) {
        (void)result;
        answer->opened[0].opened.n_bytes = UINT64_MAX - 100;
}

static void give_no_width(struct render_answer *answer, int *result) {
        (void)result;
        answer->opened[0].opened.width = 0;
}

static void give_odd_flags(struct render_answer *answer, int *result) {
        (void)result;
        memset(&answer->opened[0].is_rendered, 0x55, 1);
}

static void succeed_twice(struct render_answer *answer, int *result) {
        (void)answer;
        *result = 5;
}

static void fail_though_done(struct render_answer *answer, int *result) {
        (void)answer;
        *result = -EBADMSG;
}

static void plead_a_shortage(struct render_answer *answer, int *result) {
        answer->n_opened = 0;
        strcpy(answer->why.text, "of \x1b[31m"
                                 "descriptors");
        *result = -EMFILE;
}

static void shout(struct render_answer *answer, int *result) {
        answer->n_opened = 0;
        memset(answer->why.text, 'A', sizeof(answer->why.text));
        *result = -EBADMSG;
}

static const struct {
        void (*instead)(void);                                 /* of an answer */
        void (*of)(struct render_answer *answer, int *result); /* an answer */
        const char *text;                                      /* that the ledger has */
} DEEDS[] = {
        { leave, NULL, "its decoder ended with status 3, and so did 2 others before it" },
        { fault, NULL, "its decoder ended by signal 11 (Segmentation fault)" },
        { talk_to_the_network, NULL, "ended by signal 31" },
        { start_a_process, NULL, "ended by signal 31" },
        { become_a_program, NULL, "ended by signal 31" },
        { make_code, NULL, "ended by signal 31" },
        { end_the_daemon, NULL, "ended by signal 31" },
        { pass_descriptors, NULL, "ended by signal 31" },
        { open_files, NULL, "ended with status 4" },
        { take_all_memory, NULL, "ended with status 6" },
        { spin, NULL, "did not answer and was killed" },
        { write_much, NULL, "ended with status 8; it wrote: something is ?[31mwrong" },
        { hang_up, NULL, "hung up and was killed" },
        { say_something_else, NULL, "gave an answer that makes no sense" },
        { answer_another_order, NULL, "gave an answer that makes no sense" },
        { NULL, add_fields, "gave an answer that makes no sense" },
        { NULL, add_stages, "gave an answer that makes no sense" },
        { NULL, give_another_shape, "gave an answer that makes no sense" },
        { NULL, give_another_size, "gave an answer that makes no sense" },
        { NULL, give_no_width, "gave an answer that makes no sense" },
        { NULL, give_odd_flags, "gave an answer that makes no sense" },
        { NULL, succeed_twice, "gave an answer that makes no sense" },
        { NULL, fail_though_done, "gave an answer that makes no sense" },
        { NULL, plead_a_shortage, "of ?[31mdescriptors" },
        { NULL, shout, "AAAAAAAA" },
};

#define N_BAD ((uint32_t)ARRAY_SIZE(DEEDS))

/* Of the samples of a packet, the first that is to be bad; N_BAD: none. */
static uint64_t first_bad(const struct render_orders *orders) {
        const uint8_t *at = (const uint8_t *)(orders + 1);

        for (uint64_t k = 0; k < orders->n_orders; k++) {
                const struct render_order *order = (const struct render_order *)(const void *)at;

                if (order->sample < N_BAD)
                        return order->sample;
                at += RENDER_ORDER_BYTES(order->n_fields);
        }
        return N_BAD;
}

static size_t misbehave(const void *words, size_t n_bytes, void *answer, int *ret_result) {
        uint64_t bad = first_bad(words);
        uint8_t *first = (uint8_t *)answer + sizeof(struct render_answers) - sizeof(struct cell_head);
        struct render_answer reply;
        size_t n;

        if (bad < N_BAD && DEEDS[bad].instead)
                DEEDS[bad].instead();
        n = render_order(words, n_bytes, answer, ret_result);
        if (bad == N_BAD || !DEEDS[bad].of)
                return n;
        if (((const struct render_orders *)words)->n_orders > 1) /* nonsense: they are ordered one by one then */
                return 0;
        memset(&reply, 0, sizeof(reply));
        memcpy(&reply, first, n - (size_t)(first - (uint8_t *)answer));
        DEEDS[bad].of(&reply, &reply.result);
        n = RENDER_ANSWER_BYTES(reply.n_opened);
        memcpy(first, &reply, n);
        return (size_t)(first - (uint8_t *)answer) + n;
}

static const struct cell_kind HOSTILE[] = {
        { RENDER_KIND, render_prepare, misbehave, render_forget },
        { 0 },
};

__attribute__((constructor)) static void be_a_cell(int argc, char **argv) {
        if (argc > 1) /* a sanitizer's runtime would handle it, and end the process in another way */
                signal(SIGSEGV, SIG_DFL);
        cell_inside(argc, argv, HOSTILE);
}

/* ---- in the test ------------------------------------------------------------------------------------------------- */

static void check_ledger(void) {
        struct ledger *ledger = serving.dataset->ledger;
        struct ledger_entry entry;
        bool is_there[N_BAD] = { 0 };

        for (uint64_t i = 0; ledger_at(ledger, i, &entry); i++) {
                ck_assert_msg(entry.sample < N_BAD, "sample %llu: %s", (unsigned long long)entry.sample,
                              entry.error.text);
                ck_assert_msg(strstr(entry.error.text, DEEDS[entry.sample].text) != NULL,
                              "sample %llu: \"%s\"; expected: %s", (unsigned long long)entry.sample, entry.error.text,
                              DEEDS[entry.sample].text);
                is_there[entry.sample] = true;
        }
        for (uint32_t i = 0; i < N_BAD; i++)
                ck_assert_msg(is_there[i], "sample %u was served: %s", i, DEEDS[i].text);
}

START_TEST(a_process_that_was_taken_over_spoils_its_sample_and_nothing_else) {
        struct rank_options options = { .world = 1,
                                        .batch_size = 4,
                                        .pipeline = "center_crop(8)",
                                        .on_error = ON_ERROR_SKIP,
                                        .max_errors = N_BAD };
        uint64_t n_served = 0;
        struct taken taken;
        struct rank rank;

        serving_start(&serving,
                      &(struct serving_options){ .n_samples = N_SAMPLES, .n_classes = 1, .is_isolated = true });
        rank_attach(&rank, &serving, &options);
        for (uint64_t step = 0; step < rank.feed->whole.n_batches; step++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                for (uint32_t i = 0; i < taken.record->n_samples; i++, n_served++) {
                        ck_assert_int_ge(taken.columns.indices[i], N_BAD);
                        check_picture(&taken, i, (uint32_t)taken.columns.indices[i]);
                }
                rank_release(&rank, &taken);
        }
        ck_assert_uint_eq(n_served, N_SAMPLES - N_BAD);
        check_ledger();
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "hostile", a_process_that_was_taken_over_spoils_its_sample_and_nothing_else },
        };

        return suite_run("isolation", rows, ARRAY_SIZE(rows));
}
