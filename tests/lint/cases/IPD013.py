import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


class Knows(nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device


net = Net().cuda().eval()
x = torch.zeros(3, device=net.device)  # here
knows = Knows()
y = torch.zeros(3, device=knows.device)
linear = nn.Linear(3, 3)
z = torch.zeros(3, device=linear.device)  # here


def of_an_argument(net):
    return net.device
