import torch.nn as nn


class Towers(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [nn.Linear(3, 3) for _ in range(3)]  # here
        self.heads = {"age": nn.Linear(3, 1), "name": nn.Linear(3, 9)}  # here
        self.filled = []  # here
        for size in sizes:
            self.filled.append(nn.Linear(3, size))
        self.right = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.parts = [nn.Linear(3, 3), nn.ReLU()]
        self.whole = nn.Sequential(*self.parts)
        self.sizes = [3, 4]


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3) for _ in range(3)]
        for number, layer in enumerate(self.layers):
            setattr(self, f"layer{number}", layer)


class Plain:
    def __init__(self):
        self.layers = [nn.Linear(3, 3)]
