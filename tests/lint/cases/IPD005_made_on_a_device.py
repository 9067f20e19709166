import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.ones(3)  # made where the model is made

    def forward(self, x):
        return x * self.factor


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()
        self.shift = torch.zeros(3)

    def forward(self, x):
        return self.scale(x) + self.shift


class Empty(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.ones(3)  # here

    def forward(self, x):
        return x * self.factor


with torch.device("cuda"):
    model = Model()
with torch.device("meta"):
    empty = Empty()
empty.to_empty(device="cuda")
