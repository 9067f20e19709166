# id = "196"
# cause = "optimizer_state"
# also_causes = ["checkpoint_location"]
# culprit = "opt.state[net[0].weight]['momentum_buffer']"
# also_culprit = ["opt", "opt.state", "buf", "saved['momentum']", "opt.state[p]['momentum_buffer']", "opt.state[net[0].weight]", "opt.state[net[0].bias]['momentum_buffer']"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [2, 5]
# origin = "opt.state[p][\"momentum_buffer\"] = buf.clone()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(s['momentum_buffer'].device == torch.device(DEV) for s in opt.state.values()) and next(net.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "opt.state[p][\"momentum_buffer\"] = buf.clone()"
# new = "opt.state[p][\"momentum_buffer\"] = buf.to(p.device)"
# [rerun]
# cells = [3, 5]

# %%
import copy
import torch
from torch import nn

def build():
    torch.manual_seed(11)
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    return net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

# %%
# what the job of last night saved
old, old_opt = build()
old(torch.ones(2, 4)).sum().backward(); old_opt.step()
saved = {"model": copy.deepcopy(old.state_dict()), "momentum": [old_opt.state[p]["momentum_buffer"].clone() for p in old.parameters()]}

# %%
net, opt = build()
net.load_state_dict(saved["model"]); net.to(DEV)
for p, buf in zip(net.parameters(), saved["momentum"]):
    opt.state[p]["momentum_buffer"] = buf.clone()

# %%
def fit(n, bs=3):
    for _ in range(n):
        opt.zero_grad()
        net(torch.rand(bs, 4, device=DEV)).pow(2).mean().backward()
        opt.step()

# %%
fit(2)
