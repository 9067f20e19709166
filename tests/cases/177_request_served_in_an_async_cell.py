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
# # the failed cell has taken one request out of the queue: after an edit of cell 2 the two of cell 3 come on top, so worker(2) reads an old one first; numbers would differ for a re-run without cell 1
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.tensor(payload[\"features\"])"
# new = "torch.tensor(payload[\"features\"], device=DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import asyncio
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).to(DEV).eval()
queue = asyncio.Queue()

# %%
async def worker(n):
    answers = []
    for _ in range(n):
        payload = await queue.get()
        features = torch.tensor(payload["features"])
        with torch.inference_mode():
            answers.append(model(features[None]))
        queue.task_done()
    return torch.cat(answers)

# %%
for k in range(2): queue.put_nowait({"id": k, "features": [0.1 * k, 0.2, 0.3]})
answers = await worker(2)
