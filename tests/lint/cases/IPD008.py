import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, pictures):
        self.pictures = pictures

    def __getitem__(self, i):
        return self.pictures[i].cuda(), torch.zeros(1, device="cuda")  # here here


class Right(Dataset):
    def __getitem__(self, i):
        return torch.zeros(1)


def together(batch):
    return torch.stack(batch).to("cuda:0")  # here IPD001


loader = DataLoader(Right(), collate_fn=together, num_workers=2)
