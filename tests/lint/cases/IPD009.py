import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def init_hidden(self, batch):
        return torch.zeros(1, batch, 4)  # here

    def init_hidden_right(self, batch):
        return torch.zeros(1, batch, 4, device=next(self.parameters()).device)
