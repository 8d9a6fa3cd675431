"""features_torchaudio.py ROUNDS: what torchaudio takes for the features of features.py, one thread.

Prints the versions (nothing, if torchaudio is missing); then for each line [NAME, SECONDS] CPU microseconds of the fastest round."""
import json
import sys
import time

try:
    import torch
    torch.version.cuda = None  # torchaudio insists on the CUDA with which it was built; nothing here uses one
    import torchaudio
    import torchaudio.functional as F
    import torchaudio.transforms as T
except ImportError:
    sys.exit(77)

RATE = 16000
torch.set_num_threads(1)
mel = T.MelSpectrogram(RATE, n_fft=400, hop_length=160, n_mels=80)
db = T.AmplitudeToDB(top_db=80)
masks = T.SpecAugment(2, 100, 2, 27)
TRANSFORMS = {
    "mel": mel, "mel_usual": T.MelSpectrogram(RATE), "mel_1024": T.MelSpectrogram(RATE, n_fft=1024, hop_length=256, n_mels=80),
    "spectrogram": T.Spectrogram(400), "db": lambda x: db(mel(x)), "mfcc": T.MFCC(RATE),
    "noise": lambda x: F.add_noise(x, torch.randn_like(x), torch.empty(1).uniform_(10, 30)[0]),
    "gain": lambda x: F.gain(x, float(torch.empty(1).uniform_(-6, 6))), "masks": lambda x: masks(mel(x)),
}


def main():
    print(f"torchaudio {torchaudio.__version__}, torch {torch.__version__}", flush=True)
    for line in sys.stdin:
        name, seconds = json.loads(line)
        x = torch.rand(seconds * RATE) - 0.5
        times = []
        for _ in range(int(sys.argv[1])):
            begin = time.process_time()
            TRANSFORMS[name](x)
            times.append(time.process_time() - begin)
        print(min(times) * 1e6, flush=True)


main()
