import torch

# a model in two halves, on purpose
front = torch.nn.Linear(3, 3).to("cuda:0")
back = torch.nn.Linear(3, 3).to("cuda:1")
