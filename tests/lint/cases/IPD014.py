import torch

a = torch.zeros(3).cuda().numpy()  # here
b = torch.zeros(3).to("cuda")
c = b.numpy()  # here
d = torch.zeros(3).numpy()
e = b.cpu().numpy()
f = torch.zeros(3, device="cuda").detach().numpy()  # here


def unknown(x):
    return x.numpy()
