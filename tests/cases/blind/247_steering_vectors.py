# id = "247"
# cause = "closure_constant"
# also_causes = ["fresh_tensor_no_device", "input_not_moved"]
# culprit = "vec"
# also_culprit = ["coef * vec", "direction", "directions['calm']", "directions", "hook"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [3, 4]
# origin = "directions = {'calm': unit([1., 0., -1., 2.]), 'angry': unit([0., 2., 1., -1.])}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "steered.device == torch.device(DEV) and not torch.equal(steered, plain) and len(toy[1]._forward_hooks) == 0"
# # `with` takes the hook off again also after the error
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return out + coef * vec"
# new = "return out + coef * vec.to(out.device)"
# [rerun]
# cells = [2, 4]

# %%
import contextlib
import torch
from torch import nn

toy = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 9)).to(DEV).eval()
ids = torch.tensor([[1, 5, 2], [7, 7, 3]]).to(DEV)

# %%
def make_hook(direction, coef):
    vec = direction - direction.mean()
    def hook(module, args, out):
        return out + coef * vec
    return hook

@contextlib.contextmanager
def steering(model, layer, direction, coef=3.0):
    handle = model.get_submodule(layer).register_forward_hook(make_hook(direction, coef))
    try:
        yield model
    finally:
        handle.remove()

# %%
def unit(values):
    v = torch.tensor(values)
    return v / v.norm()

directions = {'calm': unit([1., 0., -1., 2.]), 'angry': unit([0., 2., 1., -1.])}

# %%
with torch.no_grad():
    plain = toy(ids)
    with steering(toy, '1', directions['calm']):
        steered = toy(ids)
print((steered - plain).abs().max())
