# Making a model on a device says nothing about what its forward makes later.
import torch
from torch import nn


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn(x.shape)  # here


with torch.device("cuda"):
    net = Noisy()
print(net(torch.ones(3, device="cuda")))
