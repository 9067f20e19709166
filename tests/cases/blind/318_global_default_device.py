# id = "318"
# cause = "default_device_global"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "taper"
# also_culprit = ["torch.hann_window(self.width)", "torch.hann_window(self.width, periodic=False)"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = []
# origin = "torch.set_default_device(DEV)      # no more .to() everywhere"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "dataset / collate"
# visible = "raising frame"
# expect_after_fix = "x0.shape == (16,) and x0.device == torch.device(HOST) and pred.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.hann_window(self.width, periodic=False)"
# new = "torch.hann_window(self.width, periodic=False, device=wave.device)"
# [rerun]
# cells = [3, 4]

# %%
import numpy as np
import torch
from torch import nn

torch.set_default_device(DEV)      # no more .to() everywhere

# %%
class SeizureNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, 2))
    def forward(self, x):
        return self.body(x)

net = SeizureNet()
print(next(net.parameters()).device)

# %%
class EEGWindows(torch.utils.data.Dataset):
    """recording lies in a numpy memmap, is cut and tapered on the fly"""
    def __init__(self, recording, width=16, hop=8):
        self.rec, self.width = recording, width
        self.starts = range(0, len(recording) - width + 1, hop)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        wave = torch.from_numpy(self.rec[s:s + self.width])
        taper = torch.hann_window(self.width, periodic=False)
        return (wave - wave.mean()) * taper, int(i % 2)

eeg = EEGWindows(np.sin(np.arange(64, dtype=np.float32) / 3))

# %%
x0, label = eeg[0]
with torch.no_grad():
    pred = net(x0.to(DEV))
