import torch
from torch import nn

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
net = nn.Linear(3, 1).to("cuda:1")  # here
x = torch.zeros(3, device="cuda:1")  # here
y = torch.zeros(3, device="cuda")
z = torch.zeros(3, device=device)
if torch.cuda.device_count() > 1:
    z = z.to("cuda:1")
