# select: ALL
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(2, 2))  # IPD010
for step, x in enumerate(range(3)):
    loss = model(torch.zeros(2)).sum()
    loss.backward()
    print(loss.item())  # IPD015
    print(step)
    print("loss", loss)  # IPD015
    print(f"loss {loss:.2f}")  # IPD015
    history = [loss.detach().cpu()]  # IPD015
    if step % 100 == 0:
        print(loss.item(), loss)

for epoch in range(3):
    for x in range(3):
        loss = model(torch.zeros(2)).sum()
        loss.backward()
    print(loss.item())
