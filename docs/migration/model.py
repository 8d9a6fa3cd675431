"""The network that all programs here train: small enough for a CPU."""
import torch


class Net(torch.nn.Sequential):
    def __init__(self, n_classes):
        super().__init__(
            torch.nn.Conv2d(3, 16, 7, stride=4), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, n_classes))
