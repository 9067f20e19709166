import math

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


class UnderItsInputsDevice(nn.Module):
    def forward(self, x, device):
        with torch.device(x.device):
            noise = torch.randn(x.shape)
            if self.training:
                noise = noise + torch.rand(3)
        with x.device, torch.no_grad():
            more = torch.ones(x.shape)
        with device:
            more = more + torch.ones(3)
        return x + noise + more


class UnderTheCurrentCard(nn.Module):
    def forward(self, x):
        with torch.cuda.device(1):  # says where "cuda" is, not where factories make
            noise = torch.randn(x.shape)  # here
        with torch.no_grad():
            return x + noise * torch.ones(x.shape)  # here


class Numbers(nn.Module):
    def forward(self, x):
        scale = torch.rand(())
        shift = torch.zeros(size=()) + torch.full((), 2.0) + torch.randint(0, 5, ())
        chance = torch.rand(1)
        keep = chance < self.drop
        level = float(torch.randn(1)) + round(torch.rand(1).item()) + math.floor(torch.rand(1))
        if keep and torch.rand(1) > 0.5:
            x = x * level
        for layer in [layer for layer in self.layers if torch.rand(1) < 0.5]:
            x = layer(x)
        return x * scale + shift if chance > 0.2 else x

    def forward_wrong(self, x):
        chance = torch.rand(1)  # here
        if chance > 0.5:
            x = x + 1
        return x * chance


def focal_loss(logits, target, gamma=2.0):
    weight = torch.ones(logits.shape[1])  # here
    return (weight * (logits - target) ** gamma).mean()


def indexed_loss(logits, target):
    rows = torch.arange(logits.shape[0])
    halves = rows // 2
    return -logits[rows, target].mean() - logits[halves, 0].mean()


def loss_of_numbers(n):
    return torch.zeros(n)
