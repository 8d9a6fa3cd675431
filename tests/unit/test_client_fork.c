/* The child of a fork and its parent's loader. */

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/client.h"
#include "tests/support/suite.h"

START_TEST(after_a_fork_only_the_parent_uses_the_loader) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held = take(loader), *batch;
        volatile uint8_t *mine;
        int status;
        pid_t pid = fork();

        if (pid == 0) { /* no assertion here: the test's process is the parent */
                if (dlc_next(loader, -1, &batch) != -ECHILD || !strstr(dlc_error(loader), "fork"))
                        _exit(1);
                if (dlc_release(loader, held) != -ECHILD || dlc_set_epoch(loader, 3) != -ECHILD ||
                    dlc_fd(loader) != -ECHILD)
                        _exit(2);
                if (dlc_epoch_batches(loader) != 25)
                        _exit(3);
                /* What lies at the batches' address now is the child's own; closing must not take it away. */
                mine = mmap(dlc_get_info(loader)->memory_base, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                if (mine == MAP_FAILED)
                        _exit(4);
                dlc_close(loader);
                *mine = 1;
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        check_batch(loader, held, 0, 0);
        ck_assert_int_eq(dlc_release(loader, held), 0);
        check_steps(loader, 0, 1, 25);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "fork", after_a_fork_only_the_parent_uses_the_loader },
        };

        return suite_run("client_fork", rows, sizeof(rows) / sizeof(rows[0]));
}
