# id = "172"
# cause = "to_result_discarded"
# also_causes = []
# culprit = "images"
# also_culprit = ["test[0][0]", "batches", "test"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "images.to(device)        # ... but not for a tensor"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "n_right.device == torch.device(DEV) and model.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "images.to(device)  "
# new = "images = images.to(device)  "
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "labels.to(device)\n"
# new = "labels = labels.to(device)\n"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
from tempfile import TemporaryDirectory
import os

device = torch.device(DEV)
model = nn.Linear(6, 2)
model.to(device)          # fine for a module ...

# %%
def evaluate(batches):
    correct = torch.zeros((), device=device)
    for images, labels in batches:
        images.to(device)        # ... but not for a tensor
        labels.to(device)
        outputs = model(images)
        correct += (outputs.argmax(1) == labels).sum()
    return correct

# %%
test = [(torch.rand(4, 6), torch.zeros(4, dtype=torch.long)) for _ in range(2)]
n_right = evaluate(test)
