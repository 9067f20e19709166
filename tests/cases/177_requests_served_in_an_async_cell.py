# id = "177"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "features"
# also_culprit = ["features[None]", "torch.tensor(payload[\"features\"])"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "features = torch.tensor(payload[\"features\"])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "answers.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.tensor(payload[\"features\"])"
# new = "torch.tensor(payload[\"features\"], device=DEV)"
# [rerun]
# cells = [2, 3]

# %%
import asyncio
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).to(DEV).eval()
requests = [{"id": k, "features": [0.1 * k, 0.2, 0.3]} for k in range(3)]

# %%
async def serve(payload, delay=0.001):
    await asyncio.sleep(delay)
    features = torch.tensor(payload["features"])
    with torch.inference_mode():
        return model(features[None])

# %%
answers = [await serve(r) for r in requests]
answers = torch.cat(answers)
