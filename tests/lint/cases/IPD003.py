import torch
from torch import nn, optim


def train(device):
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)  # here
    model.to(device)
    return optimizer


def right(device):
    model = nn.Linear(4, 2)
    model = model.to(device)
    return torch.optim.Adam(model.parameters())


def built_again(device):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.step()
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return optimizer


def saved_at_home(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.cpu()
    torch.save(model.state_dict(), "net.pt")
    return optimizer


def half(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.to(torch.bfloat16)
    return optimizer
