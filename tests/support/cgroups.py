"""Control groups of a test's own, for root where some hierarchy can be written.

    groups = Groups(box)
    command = [*groups.inside("job_1/step_0"), DLCTL, "status"]     # a program that runs in that group
"""
import os

from harness import Skip, within

PLACES = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/systemd")
CPU_PLACES = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")  # here a group is a share of the CPUs; version 1 only


class Groups:
    """Removed with the box. Make it before whatever starts programs in it: what was made first is closed last."""

    n_groups = 0

    def __init__(self, box, places=PLACES):
        Groups.n_groups += 1
        self.made = []
        self.top = self.find(places, f"dataloaderd-test-{os.getpid()}-{Groups.n_groups}")
        self.make(self.top)
        box.cleanups.append(self.close)

    @staticmethod
    def find(places, name):
        """A hierarchy that can be written; by PLACES the kernel says where a process lives: version 2, or that of systemd."""
        for place in places:
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

    def folder(self, name):
        """The group `name`, below the test's own."""
        folder = self.top
        for part in name.split("/"):
            folder = os.path.join(folder, part)
            self.make(folder)
        return folder

    def inside(self, name):
        """The beginning of a command that runs what follows in the group `name`."""
        return ["sh", "-c", f"echo $$ >{self.folder(name)}/cgroup.procs && exec \"$@\"", "sh"]

    def enter(self, name, pid):
        """Moves a running process, with all its threads, into the group `name`."""
        self.move(self.folder(name), pid)

    def leave(self, pid):
        """Moves it to where the test's own group lies."""
        self.move(os.path.dirname(self.top), pid)

    @staticmethod
    def move(folder, pid):
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))

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
