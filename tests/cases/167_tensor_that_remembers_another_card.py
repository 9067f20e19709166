# id = "167"
# cause = "checkpoint_location"
# also_causes = []
# culprit = "tau"
# also_culprit = ["saved[\"tau\"]", "saved"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "saved = torch.load(file)"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "checkpoint load"
# visible = "first user frame"
# expect_after_fix = "logits.device == torch.device(DEV)"
# # map_location in cell 2 is right too, but then the file has to be wound back: cells 1, 2 and 3
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.load(file)"
# new = "torch.load(file, map_location=DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import io, torch
from torch import nn

# another run, on the other card, left this file
file = io.BytesIO()
torch.save({"tau": torch.ones(3, device=DEV2) * 0.5, "step": 10}, file)
file.seek(0);

# %%
saved = torch.load(file)
tau = saved["tau"]
student = nn.Linear(4, 3).to(DEV)

# %%
logits = student(torch.rand(2, 4, device=DEV)) / tau
