"""A small residual network for images of 3 x 12 x 12."""

from torch import nn
from torch.nn import functional as F  # noqa: N812


class Residual(nn.Module):
    """Two convolutions beside the identity."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        """Adds the branch to its input."""
        branch = F.relu(self.norm1(self.conv1(x)))
        branch = self.norm2(self.conv2(branch))
        return F.relu(x + branch)


class Network(nn.Module):
    """Stem, residual blocks, mean over places, classes."""

    def __init__(self, channels=8, num_classes=5):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.Sequential(Residual(channels), Residual(channels))
        self.drop = nn.Dropout(0.2)
        self.classes = nn.Linear(channels, num_classes)

    def forward(self, images):
        """Returns logits."""
        x = self.pool(F.relu(self.norm(self.stem(images))))
        x = self.blocks(x)
        return self.classes(self.drop(x.mean(dim=(2, 3))))
