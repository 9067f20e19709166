# id = "320"
# cause = "no_accelerator"
# also_causes = ["hardcoded_device"]
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = [4]
# origin = "args = parser.parse_args('--gpu 5 --hidden 8'.split())"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "out.device.type == torch.device(DEV).type and out.shape == (3,)"
# numbers = false   # '--gpu 0' is as right as DEV, but names a card, which the all-CPU run has not
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "args.device = f'cuda:{args.gpu}'"
# new = "args.device = DEV"
# [rerun]
# cells = [1, 4]

# %%
import argparse, torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--gpu', type=int, default=0)
parser.add_argument('--hidden', type=int, default=16)
parser.add_argument('--lr', type=float, default=1e-3)
args = parser.parse_args('--gpu 5 --hidden 8'.split())      # copied from run.sh of the lab server
args.device = f'cuda:{args.gpu}'

# %%
class Siamese(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 4))
    def forward(self, a, b):
        return torch.cosine_similarity(self.tower(a), self.tower(b))

# %%
class Solver:
    def __init__(self, args):
        self.args = args
        self.net = Siamese(args.hidden).to(args.device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)

    def predict(self, a, b):
        a, b = a.to(self.args.device), b.to(self.args.device)
        return self.net(a, b)

# %%
solver = Solver(args)
out = solver.predict(torch.rand(3, 6), torch.rand(3, 6))
