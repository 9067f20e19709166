# id = "330"
# cause = "library_returns_cpu"
# also_causes = []
# culprit = "torch.from_numpy(E[1:-1, 1:-1].astype(np.float32))"
# also_culprit = ["grad"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 5]
# origin = "grad = torch.from_numpy(E[1:-1, 1:-1].astype(np.float32))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "not in any frame"
# expect_after_fix = "head.weight.grad.device == torch.device(DEV) and bool(head.weight.grad.isfinite().all())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return float(grad_output) * grad, None"
# new = "return grad_output * grad.to(grad_output.device), None"
# [rerun]
# cells = [2, 3, 5]

# %%
import numpy as np
import torch
from torch import nn

# %%
# pasted from the numpy/numba implementation everybody uses
def _softmin(a, b, c, gamma):
    z = np.array([a, b, c]) / -gamma
    m = z.max()
    return -gamma * (m + np.log(np.exp(z - m).sum()))

class _SoftDTW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, D, gamma):
        d = D.detach().cpu().numpy().astype(np.float64)
        n, m = d.shape
        R = np.full((n + 2, m + 2), np.inf)
        R[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                R[i, j] = d[i - 1, j - 1] + _softmin(R[i - 1, j - 1], R[i - 1, j], R[i, j - 1], gamma)
        ctx.R, ctx.d, ctx.gamma = R, d, gamma
        return D.new_tensor(R[n, m])

    @staticmethod
    def backward(ctx, grad_output):
        R, gamma = ctx.R.copy(), ctx.gamma
        n, m = ctx.d.shape
        d = np.zeros((n + 2, m + 2)); d[1:-1, 1:-1] = ctx.d
        E = np.zeros((n + 2, m + 2)); E[-1, -1] = 1
        R[:, -1] = R[-1, :] = -np.inf
        R[-1, -1] = R[-2, -2]
        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                w = [np.exp((R[p, q] - R[i, j] - d[p, q]) / gamma) * E[p, q] for p, q in ((i + 1, j), (i, j + 1), (i + 1, j + 1))]
                E[i, j] = sum(w)
        grad = torch.from_numpy(E[1:-1, 1:-1].astype(np.float32))
        return float(grad_output) * grad, None

# %%
def soft_dtw(x, y, gamma=0.5):
    return _SoftDTW.apply((x[:, None, :] - y[None, :, :]).pow(2).sum(-1), gamma)

# %%
head = nn.Linear(3, 2).to(DEV)
inputs, reference = torch.rand(6, 3, device=DEV), torch.rand(5, 2, device=DEV)
print('before training:', soft_dtw(head(inputs), reference).item())

# %%
head.zero_grad()
dtw = soft_dtw(head(inputs), reference)
dtw.backward()
