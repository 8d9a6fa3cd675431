"""Features of sound beside torchaudio: CPU microseconds of one thread for a sound of 2, 10 and 30 s in memory, no decoding.

    features_NAME_S, features_NAME_S_torchaudio   us a sound of S seconds
    features_NAME_S_vs_torchaudio                 torchaudio's over ours, in turns

TORCHAUDIO_PYTHON names a Python that has torch and torchaudio; else Debian's is tried, and without torchaudio all is left out.
"""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = (2, 10, 30)
ROUNDS = 30
STEPS = {
    "mel": "mel_spectrogram(400, hop_length=160, n_mels=80)",
    "mel_usual": "mel_spectrogram",
    "mel_1024": "mel_spectrogram(1024, hop_length=256, n_mels=80)",
    "spectrogram": "spectrogram(400)",
    "db": "mel_spectrogram(400, hop_length=160, n_mels=80) amplitude_to_db(top_db=80)",
    "mfcc": "mfcc",
    "noise": "noise(10:30)",
    "gain": "gain(-6:6)",
    "masks": "mel_spectrogram(400, hop_length=160, n_mels=80) spec_augment(2, 100, 2, 27)",
}


def run(emit, python, build, repeats):
    python = os.environ.get("TORCHAUDIO_PYTHON", python)
    server = subprocess.Popen([python, "-W", "ignore", os.path.join(HERE, "features_torchaudio.py"), str(ROUNDS)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    versions = server.stdout.readline().strip()
    if not versions:
        print("features: left out; it needs torchaudio: name a Python that has it in TORCHAUDIO_PYTHON", file=sys.stderr)
        server.wait()
        return

    def theirs(name, seconds):
        server.stdin.write(json.dumps([name, seconds]) + "\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    def ours(name, seconds):
        return float(subprocess.run([os.path.join(build, "bench", "features_only"), str(seconds), str(ROUNDS), STEPS[name]],
                                    check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout)

    for name in STEPS:
        for seconds in SECONDS:
            pairs = [(ours(name, seconds), theirs(name, seconds)) for _ in range(repeats)]
            emit(f"features_{name}_{seconds}", statistics.median(a for a, _ in pairs), "us", repeats=repeats)
            emit(f"features_{name}_{seconds}_torchaudio", statistics.median(b for _, b in pairs), "us", versions=versions)
            emit(f"features_{name}_{seconds}_vs_torchaudio", statistics.median(b / a for a, b in pairs), "ratio")
    server.stdin.close()
    server.wait()
