# id = "139"
# cause = "to_numpy"
# also_causes = []
# culprit = "encoder.last_attn[0]"
# also_culprit = ["encoder.last_attn", "image", "encoder"]
# culprit_cell = 4
# origin_cell = 1
# also_cells = [2]
# origin = "self.last_attn = a.detach()"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "img.shape == (3, 3) and h.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "encoder.last_attn[0]"
# new = "encoder.last_attn[0].cpu()"

# %%
import torch, torch.nn as nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.last_attn = None
    def forward(self, x):
        h = self.lin(x)
        a = (h @ h.transpose(1, 2)).softmax(-1)
        self.last_attn = a.detach()
        return a @ h

# %%
class Axes:                                   # draws nothing, asks for an array like the real one
    def imshow(self, image):
        self.image = image.numpy() if hasattr(image, "numpy") else image
        return self

# %%
tokens = "the cat sat".split()
encoder = Encoder().to(DEV)
h = encoder(torch.randn(1, len(tokens), 4, device=DEV))

# %%
ax = Axes(); ax.imshow(encoder.last_attn[0])
img = ax.image
