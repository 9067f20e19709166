import torch
import torch.nn as nn


class Noisy(nn.Module):
    def forward(self, x, n):
        noise = torch.randn(x.shape)  # here
        return x + noise * torch.rand(n, 3)  # here


class Right(nn.Module):
    def forward(self, x):
        noise = torch.randn(x.shape, device=x.device)
        mask = torch.ones(x.size(0))
        mask = mask.to(x)
        rows = torch.arange(x.size(0))
        later = torch.zeros(3).to(x.device)
        half = torch.tensor(0.5)
        sizes = torch.arange(4).tolist()
        return x[rows] * mask + noise + later * half + len(sizes)

    def describe(self):
        return torch.zeros(3)


class NoModule:
    def forward(self, x):
        return x + torch.zeros(3)
