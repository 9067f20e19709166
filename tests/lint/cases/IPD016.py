import torch

g = torch.Generator().manual_seed(0)  # here
x = torch.randn(3, generator=g, device="cuda")
h = torch.Generator(device="cuda")
y = torch.randn(3, generator=h, device="cuda")
k = torch.Generator()
z = torch.randn(3, generator=k)
