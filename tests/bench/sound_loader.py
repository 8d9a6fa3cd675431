"""soundfile's half of sound.py, run by an interpreter that has it and torch. Exit 77 without them.

    sound_loader.py make OUT FILES              FLAC files of 10 s at 16 kHz: three tones and noise, 16 bits
    sound_loader.py rate OUT WORKERS BATCHES    crops/s of torch's DataLoader: soundfile, seek and read of 3 s, batches of 64
"""
import json
import os
import sys
import time

try:
    import numpy
    import soundfile
    import torch
except ImportError:
    sys.exit(77)

RATE, SECONDS, CROP, BATCH, WARM_UP = 16000, 10, 3, 64, 8


def make(out, n_files):
    os.makedirs(out, exist_ok=True)
    at = numpy.arange(RATE * SECONDS) / RATE
    for i in range(n_files):
        dice = numpy.random.RandomState(i)
        sound = 0.02 * dice.standard_normal(len(at))
        for pitch in dice.uniform(80, 2000, 3):
            sound += 0.15 * numpy.sin(2 * numpy.pi * (pitch * at + numpy.sin(2 * numpy.pi * dice.uniform(1, 5) * at)))
        soundfile.write(os.path.join(out, f"{i:05d}.flac"), sound, RATE, subtype="PCM_16")
    with open(os.path.join(out, "metadata.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"audio_filepath": f"{i:05d}.flac"}) + "\n" for i in range(n_files))


class Crops(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".flac"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with soundfile.SoundFile(self.paths[i]) as file:
            file.seek(int(torch.randint(file.frames - CROP * RATE + 1, ())))
            return torch.from_numpy(file.read(CROP * RATE, dtype="float32"))


def rate(out, workers, n_batches):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Crops(out), BATCH, shuffle=True, num_workers=workers, prefetch_factor=4,
                                         persistent_workers=True, drop_last=True)
    n_seen, begin = 0, 0
    while n_seen < WARM_UP + n_batches:
        for batch in loader:
            batch[:, 0].sum()
            n_seen += 1
            if n_seen == WARM_UP:
                begin = time.monotonic()
            if n_seen == WARM_UP + n_batches:
                break
    print(json.dumps({"crops_per_s": n_batches * BATCH / (time.monotonic() - begin),
                      "versions": f"torch {torch.__version__}, soundfile {soundfile.__version__}, "
                                  f"libsndfile {soundfile.__libsndfile_version__}"}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        rate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
