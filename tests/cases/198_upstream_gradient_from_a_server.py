# id = "198"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device", "library_returns_cpu"]
# culprit = "g"
# also_culprit = ["torch.frombuffer(bytearray(message), dtype=torch.float32).reshape(self.cut.shape)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [3]
# origin = "g = torch.frombuffer(bytearray(message), dtype=torch.float32).reshape(self.cut.shape)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "all(g.device == torch.device(DEV) for g in grads) and len(grads) == 2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = ".reshape(self.cut.shape)"
# new = ".reshape(self.cut.shape).to(self.cut.device)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class SplitLearning:
    """the client has the first layers, a server sends the gradient of the cut layer back as bytes"""
    def __init__(self, bottom):
        self.bottom = bottom
    def forward(self, x):
        self.cut = self.bottom(x)
        return self.cut.detach().cpu().numpy().tobytes()
    def backward(self, message):
        g = torch.frombuffer(bytearray(message), dtype=torch.float32).reshape(self.cut.shape)
        self.cut.backward(gradient=g)

# %%
client = SplitLearning(nn.Sequential(nn.Linear(3, 4), nn.Tanh()).to(DEV))
sent = client.forward(torch.ones(2, 3, device=DEV))

# %%
reply = (torch.arange(8.) / 8).numpy().tobytes()
client.backward(reply)
grads = [p.grad for p in client.bottom.parameters()]
