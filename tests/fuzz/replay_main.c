/* replay_NAME [-n MUTATIONS] [-s SEED] [FILE|FOLDER...]: runs a guided fuzzer's target without libFuzzer, built by any
 * compiler: each file once, then inputs that are made of them by chance, the same ones for the same seed.
 *
 * Without files: tests/fuzz/corpus/NAME, where what was found once is kept too. It writes each input that it runs to
 * build/.../NAME.last, where a crash leaves it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/folder.h"

#define CORPUS_MAX 8192u
#define INPUT_MAX  (64u << 10)
#define MUTATIONS  1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerInitialize(int *n_arguments, char ***arguments) __attribute__((weak));

static struct bytes corpus[CORPUS_MAX];
static size_t n_corpus;
static char last_path[512]; /* the input that is under way; removed at a good end */

static void add_file(const char *path) {
        size_t n;
        char *bytes = tree_bytes(path, &n);

        if (n_corpus == CORPUS_MAX || n > INPUT_MAX) {
                free(bytes);
                return;
        }
        corpus[n_corpus++] = (struct bytes){ (uint8_t *)bytes, n, n };
}

static int is_visible(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static void add(const char *path) {
        struct dirent **entries;
        struct stat status;
        char inner[512];
        int n;

        if (stat(path, &status) < 0) {
                fprintf(stderr, "%s: %s\n", path, strerror(errno));
                exit(2);
        }
        if (!S_ISDIR(status.st_mode)) {
                add_file(path);
                return;
        }
        n = scandir(path, &entries, is_visible, alphasort);
        for (int i = 0; i < n; i++) {
                snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
                add(inner);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
}

/* Each input in memory of its own length, so that a sanitizer sees what reads past its end. */
static void run(const struct bytes *input) {
        uint8_t *bytes = malloc(input->n ? input->n : 1);
        FILE *last = fopen(last_path, "wb");

        if (!bytes)
                exit(2);
        if (last) {
                fwrite(input->at, 1, input->n, last);
                fclose(last);
        }
        memcpy(bytes, input->at, input->n);
        LLVMFuzzerTestOneInput(bytes, input->n);
        free(bytes);
}

static void change(struct bytes *input, const struct bytes *other, struct random *random) {
        size_t at = draw(random, (uint32_t)input->n + 1), n = 1 + draw(random, 16), from;

        switch (draw(random, 6)) {
        case 0:
        case 1:
                if (at < input->n)
                        input->at[at] ^= (uint8_t)(1u << draw(random, 8));
                break;
        case 2:
                if (at < input->n)
                        input->at[at] = (uint8_t)draw(random, 256);
                break;
        case 3: /* a piece falls out */
                n = n < input->n - at ? n : input->n - at;
                memmove(input->at + at, input->at + at + n, input->n - at - n);
                input->n -= n;
                break;
        case 4: /* a piece of another one comes in */
                from = draw(random, (uint32_t)other->n + 1);
                n = 4 * n < other->n - from ? 4 * n : other->n - from;
                n = n < input->room - input->n ? n : input->room - input->n;
                memmove(input->at + at + n, input->at + at, input->n - at);
                memcpy(input->at + at, other->at + from, n);
                input->n += n;
                break;
        default:
                if (draw(random, 4) == 0)
                        input->n = at;
        }
}

static void run_mutations(uint64_t seed, uint64_t n_mutations) {
        static uint8_t room[2 * INPUT_MAX];

        for (uint64_t round = 0; round < n_mutations && n_corpus > 0; round++) {
                struct random random = random_of(seed, round);
                const struct bytes *good = &corpus[draw(&random, (uint32_t)n_corpus)];
                const struct bytes *other = &corpus[draw(&random, (uint32_t)n_corpus)];
                struct bytes input = { room, good->n, sizeof(room) };

                memcpy(room, good->at, good->n);
                for (uint32_t n = 1 + draw(&random, 6); n > 0; n--)
                        change(&input, other, &random);
                run(&input);
        }
}

int main(int argc, char **argv) {
        const char *slash = strrchr(argv[0], '/');
        const char *name = strncmp(slash ? slash + 1 : argv[0], "replay_", 7) == 0 ? (slash ? slash + 1 : argv[0]) + 7
                                                                                   : "?";
        uint64_t n_mutations = MUTATIONS, seed = 1;
        char own_corpus[512];
        clock_t begin = clock();
        int option;

        while ((option = getopt(argc, argv, "n:s:")) != -1) {
                if (option != 'n' && option != 's')
                        return 2;
                *(option == 'n' ? &n_mutations : &seed) = strtoull(optarg, NULL, 10);
        }
        snprintf(last_path, sizeof(last_path), "%s.last", argv[0]);
        snprintf(own_corpus, sizeof(own_corpus), "tests/fuzz/corpus/%s", name);
        if (LLVMFuzzerInitialize)
                LLVMFuzzerInitialize(&argc, &argv);
        if (optind == argc)
                add(own_corpus);
        else
                n_mutations = n_mutations == MUTATIONS ? 0 : n_mutations;
        for (int i = optind; i < argc; i++)
                add(argv[i]);

        run(&(struct bytes){ (uint8_t[]){ 0 }, 0, 0 });
        for (size_t i = 0; i < n_corpus; i++)
                run(&corpus[i]);
        run_mutations(seed, n_mutations);
        unlink(last_path);
        printf("%s: %zu files and %" PRIu64 " inputs made of them, seed %" PRIu64 ", %.1f s of CPU time\n", name,
               n_corpus, n_corpus ? n_mutations : 0, seed, (double)(clock() - begin) / CLOCKS_PER_SEC);
        for (size_t i = 0; i < n_corpus; i++)
                free(corpus[i].at);
        return 0;
}
