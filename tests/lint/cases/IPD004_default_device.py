# A default device is set for good.
import torch
from torch import nn

torch.set_default_device("cuda")


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(3)

    def forward(self, x):
        return x * self.scale + torch.randn(x.shape)
