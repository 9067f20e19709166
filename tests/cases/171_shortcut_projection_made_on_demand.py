# id = "171"
# cause = "module_built_in_forward"
# also_causes = ["model_not_moved"]
# culprit = "shortcut"
# also_culprit = ["nn.Conv1d(x.shape[1], self.channels, kernel_size=1)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "shortcut = nn.Conv1d(x.shape[1], self.channels, kernel_size=1)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "sig.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "kernel_size=1)"
# new = "kernel_size=1).to(x.device)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
import torch.nn as nn

class ResidualBlock(nn.Module):
    def __init__(self, cin, channels):
        super().__init__()
        self.channels = channels
        self.conv = nn.Conv1d(cin, channels, 3, padding=1)
    def forward(self, x):
        y = self.conv(x)
        if x.shape[1] != self.channels:
            shortcut = nn.Conv1d(x.shape[1], self.channels, kernel_size=1)
            x = shortcut(x)
        return torch.relu(x + y)

# %%
body = nn.Sequential(ResidualBlock(3, 4), ResidualBlock(4, 4))
body = body.to(DEV)

# %%
sig = body(torch.randn(2, 3, 12, device=DEV))
