import torch
from torch.utils.data import DataLoader

device = torch.device("cuda")
train_loader = DataLoader([])
net = torch.nn.Linear(2, 2)
net.to(device)
x = torch.zeros(3)
x.to(device)  # here
x = x.to(device)
for images, labels in train_loader:
    images.to(device)  # here
    labels = labels.to(device)


def of_anything(thing):
    thing.to(device)
