# id = "309"
# cause = "optimizer_state"
# also_causes = []
# culprit = "run.opt"
# also_culprit = ["self.opt", "self.opt.state", "run.opt.state", "self.opt.state[self.net.weight]['momentum_buffer']"]
# culprit_cell = 3
# origin_cell = 5
# also_cells = [4]
# origin = "run.net.to(run.device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(s['momentum_buffer'].device == torch.device(DEV) for s in run.opt.state.values()) and run.step == 4"
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "run = Run(HOST)"
# new = "run = Run(HOST); run.net.to(DEV)"
# [rerun]
# cells = [5, 6]

# %%
import io
import torch
from torch import nn

# %%
X = torch.randn(40, 6)
Y = X @ torch.randn(6, 1)

# %%
class Run:
    def __init__(self, device):
        self.device = torch.device(device)
        self.net = nn.Linear(6, 1).to(self.device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.step = 0

    def train(self, n):
        for i in range(n):
            xb, yb = X[i * 8:i * 8 + 8].to(self.device), Y[i * 8:i * 8 + 8].to(self.device)
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(xb), yb).backward()
            self.opt.step()
            self.step += 1

    def state(self):
        return dict(net=self.net.state_dict(), opt=self.opt.state_dict(), step=self.step)

    def resume(self, state):
        self.net.load_state_dict(state['net'])
        self.opt.load_state_dict(state['opt'])
        self.step = state['step']

# %%
first = Run(DEV)
first.train(3)
disk = io.BytesIO()
torch.save(first.state(), disk)

# %%
# session 2 (after the kernel died). everything on the host first, the card may still be full
run = Run(HOST)
disk.seek(0)
run.resume(torch.load(disk, map_location=HOST))
run.device = torch.device(DEV)
run.net.to(run.device)

# %%
run.train(1)
