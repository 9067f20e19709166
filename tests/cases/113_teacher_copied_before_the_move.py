# id = "113"
# cause = "model_not_moved"
# also_causes = ["ema_shadow"]
# culprit = "teacher"
# also_culprit = ["teacher[0]", "teacher[0].weight"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = []
# origin = "teacher = copy.deepcopy(student)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "teacher.to(DEV)"

# %%
import copy
import torch, torch.nn as nn, torch.nn.functional as F
net = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 4))

# %%
student = net
teacher = copy.deepcopy(student)          # self-distillation starts from the same weights
for p in teacher.parameters():
    p.requires_grad = False
student = student.to(DEV)

# %%
def dino_loss(s_out, t_out, tp=0.04, sp=0.1):
    t = F.softmax(t_out / tp, dim=-1).detach()
    return -(t * F.log_softmax(s_out / sp, dim=-1)).sum(-1).mean()

# %%
for epoch in range(1):
    crops = [torch.randn(5, 6, device=DEV) for _ in range(2)]
    loss = dino_loss(student(crops[0]), teacher(crops[1]))
    loss.backward()
