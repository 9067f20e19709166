# id = "255"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "gate"
# also_culprit = ["ramp"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "ramp = torch.linspace(1.0, 0.5, grad.shape[-1])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a method of a user class (backward of the Function)"
# visible = "raising frame"
# expect_after_fix = "latent.grad is not None and latent.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.linspace(1.0, 0.5, grad.shape[-1])"
# new = "torch.linspace(1.0, 0.5, grad.shape[-1], device=grad.device)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch

class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, levels):
        ctx.levels = levels
        return torch.round(z * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        # straight through, but the last channels (noisier) learn slower
        ramp = torch.linspace(1.0, 0.5, grad.shape[-1])
        gate = ramp.pow(1.0 / ctx.levels)
        return grad * gate, None

# %%
def rate_distortion(z, x, lam=0.01):
    zq = Quantize.apply(z, 8)
    return (zq - x).square().mean() + lam * zq.abs().mean()

# %%
target = torch.rand(3, 6, device=DEV)
latent = torch.zeros(3, 6, device=DEV, requires_grad=True)
rd = rate_distortion(latent, target)
print("rd before:", rd.item())

# %%
rate_distortion(latent, target).backward()
with torch.no_grad():
    step = 0.5 * latent.grad
