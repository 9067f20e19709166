# id = "161"
# cause = "library_returns_cpu"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "torch.from_numpy(np.ascontiguousarray(out))"
# also_culprit = ["HostSort.backward"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [4]
# origin = "return torch.from_numpy(np.ascontiguousarray(out))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "not in any frame"
# expect_after_fix = "scorer.weight.grad.device == torch.device(DEV)"
# # the graph is not consumed, but it holds the old class: cell 3 has to run again
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "return torch.from_numpy(np.ascontiguousarray(out))"
# new = "return torch.from_numpy(np.ascontiguousarray(out)).to(ctx.dev)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import numpy as np
import torch

class HostSort(torch.autograd.Function):
    """soft ranks of a row by a host library"""
    @staticmethod
    def forward(ctx, x):
        ctx.order = np.argsort(x.detach().cpu().numpy(), axis=-1)
        ctx.dev = x.device
        ranks = np.argsort(ctx.order, axis=-1).astype(np.float32)
        return torch.from_numpy(ranks).to(x.device)

    @staticmethod
    def backward(ctx, grad):
        g = grad.cpu().numpy()
        out = np.take_along_axis(g, ctx.order, axis=-1)
        return torch.from_numpy(np.ascontiguousarray(out))

# %%
scorer = torch.nn.Linear(3, 5).to(DEV)
target = torch.arange(5.).to(DEV)

def rank_loss(x):
    return ((HostSort.apply(scorer(x)) - target) ** 2).mean()

# %%
loss = rank_loss(torch.randn(4, 3).to(DEV))

# %%
loss.backward()
