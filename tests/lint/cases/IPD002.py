import torch

net = torch.nn.Linear(2, 2)
net.load_state_dict(torch.load("net.pt"))  # here
state = torch.load("net.pt", weights_only=True)  # here
state = torch.load("net.pt", map_location="cpu")
state = torch.load("net.pt", "cpu")
options = {"map_location": "cpu"}
state = torch.load("net.pt", **options)
