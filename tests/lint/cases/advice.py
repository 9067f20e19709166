# select: ALL
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(2, 2))  # IPD010
for x in range(3):
    loss = model(torch.zeros(2)).sum()
    loss.backward()
    print(loss.item())  # IPD015
