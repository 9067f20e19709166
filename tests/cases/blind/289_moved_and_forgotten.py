# id = "289"
# cause = "to_result_discarded"
# also_causes = []
# culprit = "memory"
# also_culprit = ["feed['memory']", "feed"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [4, 5]
# origin = "value = value.to(device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function of an earlier cell"
# visible = "raising frame"
# expect_after_fix = "context.device == torch.device(DEV) and context.shape == (2, 3, 4)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "value = value.to(device)"
# new = "feed[key] = value.to(device)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
class Reader(nn.Module):
    """reads a memory with dot-product attention, slots of length 0 are masked"""
    def __init__(self, d):
        super().__init__()
        self.ask = nn.Parameter(torch.randn(3, d))
        self.out = nn.Linear(d, d)

    def forward(self, memory, n_slots, sharpen=1.0):
        q = self.ask.expand(n_slots.numel(), -1, -1)
        w = torch.baddbmm(q.new_zeros(1, 1, 1), q, memory.mT, beta=0, alpha=sharpen)
        blank = torch.arange(memory.size(1), device=w.device) >= n_slots[:, None]
        return self.out(w.masked_fill(blank[:, None], -1e4).softmax(-1) @ memory)

# %%
def pad_slots(items):
    n = torch.tensor([len(i) for i in items])
    return {"memory": nn.utils.rnn.pad_sequence(items, batch_first=True), "n_slots": n, "sharpen": 2.0}

# %%
def put(feed, device):
    for key, value in feed.items():
        if torch.is_tensor(value):
            value = value.to(device)
    return feed

class Runner:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
    def __call__(self, items):
        feed = put(pad_slots(items), self.device)
        return self.net(**feed)

# %%
run = Runner(Reader(4), DEV)
context = run([torch.randn(5, 4), torch.randn(2, 4)])
