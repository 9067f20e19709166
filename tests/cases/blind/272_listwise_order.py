# id = "272"
# cause = "index_device"
# also_causes = ["input_not_moved"]
# culprit = "ideal_order(rel, self.ties)"
# also_culprit = ["torch.from_numpy(np.ascontiguousarray(idx))"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2]
# origin = "return torch.from_numpy(np.ascontiguousarray(idx))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function of an earlier cell"
# visible = "in no frame: an anonymous temporary (a sub-expression of the line)"
# expect_after_fix = "nll.device == torch.device(DEV) and scorer.weight.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return torch.from_numpy(np.ascontiguousarray(idx))"
# new = "return torch.from_numpy(np.ascontiguousarray(idx)).to(relevance.device)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
# ListMLE (Xia et al. 2008)
import numpy as np
import torch

# %%
def ideal_order(relevance, ties="stable"):
    """best first; numpy because lexsort lets us break ties by position"""
    rel = relevance.detach().cpu().numpy()
    pos = np.broadcast_to(np.arange(rel.shape[1]), rel.shape)
    if ties == "reverse":
        pos = -pos
    idx = np.stack([np.lexsort((p, -r)) for p, r in zip(pos, rel)])
    return torch.from_numpy(np.ascontiguousarray(idx))

# %%
class ListMLE(torch.nn.Module):
    def __init__(self, ties="stable", eps=1e-10):
        super().__init__()
        self.ties, self.eps = ties, eps

    def forward(self, scores, rel):
        s = torch.take_along_dim(scores, ideal_order(rel, self.ties), dim=1)
        s = s - s.amax(1, keepdim=True)
        rest = s.exp().flip(1).cumsum(1).flip(1)
        return ((rest + self.eps).log() - s).sum(1).mean()

# %%
scorer = torch.nn.Linear(6, 1).to(DEV)
docs = torch.randn(2, 5, 6, device=DEV)
rel = torch.tensor([[0., 2., 1., 0., 3.], [1., 1., 0., 2., 0.]], device=DEV)
list_mle = ListMLE(ties="reverse")

# %%
scorer.zero_grad()
nll = list_mle(scorer(docs).squeeze(-1), rel)
nll.backward()
