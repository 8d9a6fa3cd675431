"""The datasets that are grown: folders of files and indices of any length over them, made once below build/bench/growth.

The index of 10^8 samples takes 2.8 GB there, and half a minute to make."""
import glob
import os
import random
import subprocess

N_SMALL, SMALL_BYTES, SMALL_CLASSES = 1000, 1024, 10


class Folders:
    """photos: what make bench measures with; tools: where the programs of tests/tools are."""

    def __init__(self, out, photos, tools):
        self.out, self.photos, self.tools = os.path.join(out, "growth"), photos, tools
        self.index_dir = os.path.join(self.out, "index")
        os.makedirs(self.index_dir, exist_ok=True)

    def tool(self, name, *arguments):
        subprocess.run([os.path.join(self.tools, name), *map(str, arguments)], check=True, timeout=600)

    def small(self):
        """Files that are not pictures: they are only read."""
        folder = os.path.join(self.out, "small")
        if not os.path.exists(folder):
            random.seed(1)
            for i in range(N_SMALL):
                where = os.path.join(folder + ".new", f"class_{i % SMALL_CLASSES}")
                os.makedirs(where, exist_ok=True)
                with open(os.path.join(where, f"{i}.jpg"), "wb") as file:
                    file.write(random.randbytes(SMALL_BYTES))
            os.rename(folder + ".new", folder)
        return folder

    def side(self, name):
        """The photographs from which photos are cut elsewhere, each as a whole."""
        folder = os.path.join(self.out, name)
        if not os.path.exists(folder):
            sources = sorted(glob.glob(os.path.join(self.out, "..", "..", "photographs", "**", "*.jpg"), recursive=True))
            self.tool("scale_photos", folder, name.rpartition("_")[2], *sources)
        return folder

    def prepare(self, point):
        """The folder and the name of the dataset of a point; everything is there when this returns."""
        if point.folder == "photos":
            folder = self.photos
        else:
            folder = self.small() if point.folder == "small" else self.side(point.folder)
        name = f"{point.folder}_{point.n_samples}"
        self.tool("many_index", folder, self.index_dir, name, point.n_samples)
        return folder, name
