"""Control groups of a test's own, for root where some hierarchy can be written.

    groups = Groups(box)
    command = [*groups.inside("job_1/step_0"), DLCTL, "status"]     # a program that runs in that group
"""
import os

from harness import Skip, within

PLACES = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/systemd")


class Groups:
    """Removed with the box. Make it before whatever starts programs in it: what was made first is closed last."""

    n_groups = 0

    def __init__(self, box):
        Groups.n_groups += 1
        self.made = []
        self.top = self.find(f"dataloaderd-test-{os.getpid()}-{Groups.n_groups}")
        self.make(self.top)
        box.cleanups.append(self.close)

    def find(self, name):
        """A hierarchy by which the kernel says where a process lives: version 2, or the one of systemd."""
        for place in PLACES:
            if os.path.exists(os.path.join(place, "cgroup.procs")) and os.access(place, os.W_OK):
                return os.path.join(place, name)
        raise Skip("no hierarchy of control groups can be written: it takes root, and cgroups that are not read-only")

    def make(self, folder):
        try:
            os.mkdir(folder)
        except FileExistsError:
            return
        except OSError as error:
            raise Skip(f"no control group can be made: {error}") from None
        self.made.append(folder)

    def inside(self, name):
        """The beginning of a command that runs what follows in the group `name`, below the test's own."""
        folder = self.top
        for part in name.split("/"):
            folder = os.path.join(folder, part)
            self.make(folder)
        return ["sh", "-c", f"echo $$ >{folder}/cgroup.procs && exec \"$@\"", "sh"]

    def close(self):
        for folder in reversed(self.made):
            within(20, lambda folder=folder: self.is_removed(folder), f"{folder} is empty")

    @staticmethod
    def is_removed(folder):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
