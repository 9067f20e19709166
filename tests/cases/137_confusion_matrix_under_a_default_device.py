# id = "137"
# cause = "default_device_global"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "edges"
# also_culprit = ["torch.linspace(0, 1, bins + 1)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1]
# origin = "edges = torch.linspace(0, 1, bins + 1)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "ece.device.type == 'cpu' and which.device.type == 'cpu' and prob.device.type == 'cpu'"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.linspace(0, 1, bins + 1)"
# new = "torch.linspace(0, 1, bins + 1, device=prob.device)"
# [rerun]
# cells = [2, 4]

# %%
import torch
torch.set_default_device(DEV)      # no more .to(device) everywhere
clf = torch.nn.Linear(4, 3)

# %%
def predict(x):
    with torch.no_grad():
        return clf(x).softmax(1).cpu()

def calibration(prob, true, bins=4):
    conf, pred = prob.max(1)
    edges = torch.linspace(0, 1, bins + 1)
    gap = torch.zeros((), device=prob.device)
    for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist()):
        inside = (conf > lo) & (conf <= hi)
        if inside.any():
            gap = gap + (conf[inside].mean() - (pred == true)[inside].float().mean()).abs()
    return gap, torch.bucketize(conf, edges)

# %%
x, true = torch.randn(10, 4), torch.randint(3, (10,)).cpu()
prob = predict(x)

# %%
ece, which = calibration(prob, true)
